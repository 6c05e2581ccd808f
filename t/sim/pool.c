/* Memory in the order of streams, and pools; what is freed is gone when the stream gets there.
 */
#include <stdlib.h>
#include <string.h>

#include "t/sim/device.h"
#include "t/sim/memory.h"
#include "t/sim/object.h"
#include "t/sim/sim.h"
#include "t/sim/stream.h"

struct pool {
	struct object object;
	uint32_t options[3];
	uint64_t threshold, used, high;
	int allocations, destroyed;
};

struct location {
	int type, id;
};

struct pool_properties {
	int type, handle_types;
	struct location location;
};

static struct pool *standard, *chosen;

SIM_EXPORT int cuMemAllocAsync(uint64_t *address, size_t size, void *stream);
SIM_EXPORT int cuMemAllocFromPoolAsync(
	uint64_t *address, size_t size, void *pool, void *stream);
SIM_EXPORT int cuMemFreeAsync(uint64_t address, void *stream);
SIM_EXPORT int cuDeviceGetDefaultMemPool(void **pool, int device);
SIM_EXPORT int cuDeviceGetMemPool(void **pool, int device);
SIM_EXPORT int cuDeviceSetMemPool(int device, void *pool);
SIM_EXPORT int cuMemPoolCreate(void **pool, const struct pool_properties *properties);
SIM_EXPORT int cuMemPoolDestroy(void *pool);
SIM_EXPORT int cuMemPoolTrimTo(void *pool, size_t keep);
SIM_EXPORT int cuMemPoolGetAttribute(void *pool, int attribute, void *value);
SIM_EXPORT int cuMemPoolSetAttribute(void *pool, int attribute, const void *value);

/* Under the lock. */
static struct pool *new_pool(void)
{
	struct pool *p = object_new(OBJECT_POOL, sizeof(*p));

	for (int i = 0; i < 3; i++)
		p->options[i] = 1;
	return p;
}

static struct pool *default_pool(void)
{
	if (!standard)
		standard = new_pool();
	return standard;
}

static struct pool *current_pool(void)
{
	return chosen ? chosen : default_pool();
}

static int allocate(uint64_t *address, size_t size, struct pool *p)
{
	struct range *r;

	if (!address)
		return SIM_INVALID_VALUE;
	*address = 0;
	if (!size)
		return 0;
	r = range_new(size, POOLED);
	if (!r)
		return SIM_OUT_OF_MEMORY;
	r->pool = p;
	p->used += size;
	p->allocations++;
	if (p->used > p->high)
		p->high = p->used;
	*address = r->start;
	return 0;
}

int cuMemAllocAsync(uint64_t *address, size_t size, void *stream)
{
	int r;

	SIM_ENTER();
	r = sim_have_context();
	if (r)
		return r;
	ranges_lock();
	r = allocate(address, size, current_pool());
	ranges_unlock();
	return r;
}

int cuMemAllocFromPoolAsync(uint64_t *address, size_t size, void *pool, void *stream)
{
	struct pool *p;
	int r;

	SIM_ENTER();
	r = sim_have_context();
	p = object_get(OBJECT_POOL, pool, __func__);
	if (r || !p)
		return r ? r : SIM_INVALID_VALUE;
	ranges_lock();
	r = allocate(address, size, p);
	ranges_unlock();
	return r;
}

static void put_pool(struct pool *p)
{
	if (p->destroyed && !p->allocations)
		object_free(p);
}

void pool_left(struct range *r)
{
	if (!r->pool)
		return;
	if (r->kind == POOLED)
		r->pool->used -= r->size;
	r->pool->allocations--;
	put_pool(r->pool);
}

static void free_range(void *data)
{
	struct range *r = *(struct range **)data;

	ranges_lock();
	pool_left(r);
	r->kind = POOLED;
	range_free(r);
	ranges_unlock();
}

/* From now on it is nobody's. RESERVED is what no pointer is looked for in. */
int cuMemFreeAsync(uint64_t address, void *stream)
{
	struct range *r;

	SIM_ENTER();
	if (!address)
		return 0;
	ranges_lock();
	r = range_memory(address);
	if (r && r->start == address && (r->kind == POOLED || r->kind == ALLOCATED)) {
		r->kind = RESERVED;
		if (r->pool)
			r->pool->used -= r->size;
	} else {
		r = NULL;
	}
	ranges_unlock();
	if (!r)
		return SIM_INVALID_VALUE;
	return stream_queue(stream, free_range, stream_data(&r, sizeof(r)), __func__);
}

int cuDeviceGetDefaultMemPool(void **pool, int device)
{
	SIM_ENTER();
	ranges_lock();
	*pool = default_pool();
	ranges_unlock();
	return device ? SIM_INVALID_DEVICE : sim_ready();
}

int cuDeviceGetMemPool(void **pool, int device)
{
	SIM_ENTER();
	ranges_lock();
	*pool = current_pool();
	ranges_unlock();
	return device ? SIM_INVALID_DEVICE : sim_ready();
}

int cuDeviceSetMemPool(int device, void *pool)
{
	SIM_ENTER();
	chosen = object_get(OBJECT_POOL, pool, __func__);
	return device || !chosen ? SIM_INVALID_VALUE : 0;
}

int cuMemPoolCreate(void **pool, const struct pool_properties *properties)
{
	SIM_ENTER();
	if (properties->type != 1 || properties->location.type != 1 || properties->location.id)
		return SIM_INVALID_VALUE;
	*pool = new_pool();
	return 0;
}

int cuMemPoolDestroy(void *pool)
{
	struct pool *p;

	SIM_ENTER();
	ranges_lock();
	p = object_get(OBJECT_POOL, pool, __func__);
	if (p && p != standard) {
		if (p == chosen)
			chosen = NULL;
		p->destroyed = 1;
		put_pool(p);
	}
	ranges_unlock();
	return p && p != standard ? 0 : SIM_INVALID_VALUE;
}

int cuMemPoolTrimTo(void *pool, size_t keep)
{
	SIM_ENTER();
	return object_get(OBJECT_POOL, pool, __func__) ? 0 : SIM_INVALID_VALUE;
}

int cuMemPoolGetAttribute(void *pool, int attribute, void *value)
{
	struct pool *p;

	SIM_ENTER();
	p = object_get(OBJECT_POOL, pool, __func__);
	if (!p)
		return SIM_INVALID_VALUE;
	if (attribute >= 1 && attribute <= 3)
		*(uint32_t *)value = p->options[attribute - 1];
	else if (attribute == 4)
		*(uint64_t *)value = p->threshold;
	else if (attribute == 5 || attribute == 6)
		*(uint64_t *)value = (p->used + GRANULE - 1) & ~(GRANULE - 1);
	else if (attribute == 7)
		*(uint64_t *)value = p->used;
	else if (attribute == 8)
		*(uint64_t *)value = p->high;
	else
		return SIM_INVALID_VALUE;
	return 0;
}

int cuMemPoolSetAttribute(void *pool, int attribute, const void *value)
{
	struct pool *p;

	SIM_ENTER();
	p = object_get(OBJECT_POOL, pool, __func__);
	if (!p)
		return SIM_INVALID_VALUE;
	if (attribute >= 1 && attribute <= 3)
		p->options[attribute - 1] = *(uint32_t *)value;
	else if (attribute == 4)
		p->threshold = *(uint64_t *)value;
	else if (attribute == 8 && !*(uint64_t *)value)
		p->high = p->used;
	else
		return SIM_INVALID_VALUE;
	return 0;
}
