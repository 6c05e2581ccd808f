/* Pools themselves: a device's own, pools that the program makes, their attributes. */
#include "stubs/cuda/memory.h"
#include "stubs/cuda/objects.h"
#include "stubs/cuda/pool.h"

enum pool_attribute {
	POOL_REUSE_FIRST = 1,
	POOL_REUSE_LAST = 3,
	POOL_RELEASE_THRESHOLD,
	POOL_RESERVED_CURRENT,
	POOL_RESERVED_HIGH,
	POOL_USED_CURRENT,
	POOL_USED_HIGH,
};

#define TYPE_PINNED 1
#define ACCESS_NONE 0

struct memory_pool *pool_of(void *handle)
{
	return handle && in_records_window((uint64_t)handle) ? handle : NULL;
}

static struct memory_pool *make_pool(struct memory_state *s, uint32_t device)
{
	struct memory_pool *p = MEMORY_RECORD(s->spare_pools);

	if (!p)
		return NULL;
	p->device = device;
	p->id = object_sequence();
	for (int i = 0; i < 3; i++)
		p->options[i] = 1;
	p->next = s->pools;
	s->pools = p;
	return p;
}

static int pool_default(struct memory_state *s, uint32_t device, struct memory_pool **pool)
{
	if (device >= CUDA_STATE->device_count || device >= DEVMEM_DEVICES)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!s->default_pools[device])
		s->default_pools[device] = make_pool(s, device);
	*pool = s->default_pools[device];
	return *pool ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

int pool_current(struct memory_state *s, uint32_t device, struct memory_pool **pool)
{
	if (device < DEVMEM_DEVICES && s->current_pools[device]) {
		*pool = s->current_pools[device];
		return 0;
	}
	return pool_default(s, device, pool);
}

/* ---- which pool ---- */

typedef int find_pool(struct memory_state *s, uint32_t device, struct memory_pool **pool);

static int get_pool(void **pool, int device, find_pool *find)
{
	struct memory_pool *p = NULL;
	struct memory_state *s;
	int count = 0, r = real_cuDeviceGetCount(&count);

	if (r)
		return r;
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	s = memory_lock(1);
	if (!s)
		return CUDA_ERROR_UNKNOWN;
	r = find(s, device, &p);
	memory_unlock(s);
	if (!r)
		*pool = p;
	return r;
}

int body_cuDeviceGetDefaultMemPool(void **pool, int device)
{
	return get_pool(pool, device, pool_default);
}

int body_cuDeviceGetMemPool(void **pool, int device)
{
	return get_pool(pool, device, pool_current);
}

int body_cuDeviceSetMemPool(int device, void *pool)
{
	struct memory_pool *p = pool_of(pool);
	struct memory_state *s;

	if (!p || (uint32_t)device != p->device)
		return CUDA_ERROR_INVALID_VALUE;
	s = memory_lock(0);
	if (!s)
		return CUDA_ERROR_UNKNOWN;
	s->current_pools[device] = p;
	memory_unlock(s);
	return 0;
}

static int is_on_device(const struct location *l, int type)
{
	return l && l->type == LOCATION_DEVICE && type == TYPE_PINNED;
}

static int refuse_pool(const char *name)
{
	crossing_complain(name, "only pools of a device's memory are supported");
	return CUDA_ERROR_NOT_SUPPORTED;
}

int body_cuMemGetDefaultMemPool(void **pool, const struct location *location, int type)
{
	return is_on_device(location, type) ? body_cuDeviceGetDefaultMemPool(pool, location->id)
					    : refuse_pool("cuMemGetDefaultMemPool");
}

int body_cuMemGetMemPool(void **pool, const struct location *location, int type)
{
	return is_on_device(location, type) ? body_cuDeviceGetMemPool(pool, location->id)
					    : refuse_pool("cuMemGetMemPool");
}

int body_cuMemSetMemPool(const struct location *location, int type, void *pool)
{
	return is_on_device(location, type) ? body_cuDeviceSetMemPool(location->id, pool)
					    : refuse_pool("cuMemSetMemPool");
}

/* ---- making and destroying ---- */

int body_cuMemPoolCreate(void **pool, const struct pool_properties *properties)
{
	struct memory_pool *p = NULL;
	struct memory_state *s;
	int count = 0, r = real_cuDeviceGetCount(&count);

	if (r)
		return r;
	if (!pool || !properties)
		return CUDA_ERROR_INVALID_VALUE;
	if (properties->handle_types & ~HANDLE_TYPE_FILE ||
		!is_on_device(&properties->location, properties->type))
		return refuse_pool("cuMemPoolCreate");
	if (properties->location.id >= (uint32_t)count)
		return CUDA_ERROR_INVALID_VALUE;
	s = memory_lock(1);
	if (!s)
		return CUDA_ERROR_UNKNOWN;
	p = make_pool(s, properties->location.id);
	if (p) {
		p->largest = (properties->largest + DEVMEM_GRANULE * 16 - 1) &
			     ~(DEVMEM_GRANULE * 16 - 1);
		p->handle_types = properties->handle_types;
	}
	memory_unlock(s);
	*pool = p;
	return p ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

int pool_import(void **pool, uint32_t device)
{
	struct memory_state *s = memory_lock(1);
	struct memory_pool *p = s ? make_pool(s, device) : NULL;

	if (p)
		p->imported = 1;
	if (s)
		memory_unlock(s);
	*pool = p;
	return p ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
}

int body_cuMemPoolDestroy(void *pool)
{
	struct memory_pool *p = pool_of(pool);
	struct memory_state *s = p ? memory_lock(0) : NULL;
	int r = 0;

	if (!s)
		return CUDA_ERROR_INVALID_VALUE;
	if (s->default_pools[p->device] == p || p->destroyed) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		if (s->current_pools[p->device] == p)
			s->current_pools[p->device] = NULL;
		memory_collect(s, 0);
		p->destroyed = 1;
		if (!p->allocations)
			pool_release(s, p);
	}
	memory_unlock(s);
	return r;
}

int body_cuMemPoolTrimTo(void *pool, size_t keep)
{
	struct memory_pool *p = pool_of(pool);
	struct memory_state *s = p ? memory_lock(0) : NULL;

	if (!s)
		return CUDA_ERROR_INVALID_VALUE;
	memory_collect(s, 0);
	if (s->devmem.devices[p->device].ready)
		devmem_trim(&s->devmem, &memory_driver, p->device);
	memory_unlock(s);
	return 0;
}

/* ---- attributes ---- */

static uint64_t whole_granules(uint64_t bytes)
{
	return (bytes + DEVMEM_GRANULE - 1) & ~(DEVMEM_GRANULE - 1);
}

static int get_attribute(const struct memory_pool *p, int attribute, void *value)
{
	if (attribute >= POOL_REUSE_FIRST && attribute <= POOL_REUSE_LAST) {
		*(uint32_t *)value = p->options[attribute - POOL_REUSE_FIRST];
		return 0;
	}
	switch (attribute) {
	case POOL_RELEASE_THRESHOLD:
		*(uint64_t *)value = p->threshold;
		return 0;
	case POOL_RESERVED_CURRENT:
		*(uint64_t *)value = whole_granules(p->held);
		return 0;
	case POOL_RESERVED_HIGH:
		*(uint64_t *)value = whole_granules(p->held_high);
		return 0;
	case POOL_USED_CURRENT:
		*(uint64_t *)value = p->used;
		return 0;
	case POOL_USED_HIGH:
		*(uint64_t *)value = p->used_high;
		return 0;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

/* High-water marks can be set to 0 only, which means to what is now. */
static int set_attribute(struct memory_pool *p, int attribute, const void *value)
{
	if (attribute >= POOL_REUSE_FIRST && attribute <= POOL_REUSE_LAST) {
		p->options[attribute - POOL_REUSE_FIRST] = *(const uint32_t *)value;
		return 0;
	}
	if (attribute == POOL_RELEASE_THRESHOLD) {
		p->threshold = *(const uint64_t *)value;
		return 0;
	}
	if ((attribute != POOL_RESERVED_HIGH && attribute != POOL_USED_HIGH) ||
		*(const uint64_t *)value)
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == POOL_RESERVED_HIGH)
		p->held_high = p->held;
	else
		p->used_high = p->used;
	return 0;
}

int body_cuMemPoolGetAttribute(void *pool, int attribute, void *value)
{
	struct memory_pool *p = pool_of(pool);
	struct memory_state *s = p && value ? memory_lock(0) : NULL;
	int r;

	if (!s)
		return CUDA_ERROR_INVALID_VALUE;
	r = get_attribute(p, attribute, value);
	memory_unlock(s);
	return r;
}

int body_cuMemPoolSetAttribute(void *pool, int attribute, const void *value)
{
	struct memory_pool *p = pool_of(pool);
	struct memory_state *s = p && value ? memory_lock(0) : NULL;
	int r;

	if (!s)
		return CUDA_ERROR_INVALID_VALUE;
	r = set_attribute(p, attribute, value);
	memory_unlock(s);
	return r;
}

/* ---- access by other devices: all that a device has, as they share it anyway ---- */

int body_cuMemPoolSetAccess(void *pool, const struct memory_access *map, size_t count)
{
	struct memory_pool *p = pool_of(pool);
	struct memory_state *s = p && (map || !count) ? memory_lock(0) : NULL;
	uint32_t peers;
	int r = 0;

	if (!s)
		return CUDA_ERROR_INVALID_VALUE;
	peers = s->devmem.devices[p->device].peers;
	for (size_t i = 0; i < count && !r; i++) {
		if (map[i].location_type != LOCATION_DEVICE ||
			map[i].location >= CUDA_STATE->device_count ||
			(map[i].location == p->device && map[i].flags == ACCESS_NONE))
			r = CUDA_ERROR_INVALID_VALUE;
		else if (map[i].location != p->device && map[i].flags != ACCESS_NONE)
			peers |= 1u << map[i].location;
	}
	if (!r)
		r = devmem_set_peers(&s->devmem, &memory_driver, p->device, peers);
	memory_unlock(s);
	return r;
}

int body_cuMemPoolGetAccess(uint32_t *flags, void *pool, const struct location *location)
{
	struct memory_pool *p = pool_of(pool);
	struct memory_state *s = p && flags && location && location->type == LOCATION_DEVICE
					 ? memory_lock(0)
					 : NULL;
	int r = 0;

	if (!s)
		return CUDA_ERROR_INVALID_VALUE;
	if (location->id >= CUDA_STATE->device_count)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (location->id == p->device ||
		 s->devmem.devices[p->device].peers >> location->id & 1)
		*flags = READ_WRITE;
	else
		*flags = ACCESS_NONE;
	memory_unlock(s);
	return r;
}
