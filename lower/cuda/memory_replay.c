/*
 * Device memory, pinned and registered memory, the program's own mappings (memory_state.h):
 * what of it belongs into an image, and all of it again in a fresh driver.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "bringup/core.h"
#include "lower/cuda/arrays.h"
#include "lower/cuda/cuda.h"
#include "lower/records_alloc.h"
#include "shared/cuda/graph.h"
#include "shared/cuda/memory_driver.h"

/* Ranges that are less than a block of the image apart are listed as one. */
#define GAP 4096

#define PAGE 4096ul

/* ---- the driver, for the allocator ---- */

/* Tables do not grow here. */
static void *no_memory(uint64_t size)
{
	return NULL;
}

static struct memory_functions look_up_functions(void)
{
	return (struct memory_functions){
		.cuCtxGetCurrent = cuda_function("cuCtxGetCurrent"),
		.cuMemAddressReserve = cuda_function("cuMemAddressReserve"),
		.cuMemAddressFree = cuda_function("cuMemAddressFree"),
		.cuMemCreate = cuda_function("cuMemCreate"),
		.cuMemRelease = cuda_function("cuMemRelease"),
		.cuMemMap = cuda_function("cuMemMap"),
		.cuMemUnmap = cuda_function("cuMemUnmap"),
		.cuMemSetAccess = cuda_function("cuMemSetAccess"),
		.cuMemHostRegister_v2 = cuda_function("cuMemHostRegister_v2"),
		.cuMemHostUnregister = cuda_function("cuMemHostUnregister"),
		.allocate = no_memory,
	};
}

const struct memory_functions *memory_functions(void)
{
	static struct memory_functions functions;

	if (!functions.allocate)
		functions = look_up_functions();
	return &functions;
}

static int is_open(const struct memory_state *s, uint32_t device)
{
	return s->devmem.devices[device].ready;
}

/* ---- before a checkpoint ---- */

/* How the device that has the memory of @m reaches it. */
static uint32_t own_access(const struct memory_mapping *m)
{
	const struct memory_properties *p = &m->physical->properties;

	for (uint32_t i = 0; i < m->access_count; i++)
		if (m->access[i].location_type == p->location_type &&
			m->access[i].location == p->location)
			return m->access[i].flags;
	return 0;
}

/* The mapping that the contents of @p are copied through; NULL: none. */
static const struct memory_mapping *way_to(
	const struct memory_state *s, const struct memory_physical *p)
{
	for (const struct memory_mapping *m = s->mappings; m; m = m->next)
		if (m->physical == p && own_access(m) == READ_WRITE && !m->offset &&
			m->size >= p->size)
			return m;
	return NULL;
}

/* Another process's, which saves it. */
static int is_imported(const struct memory_physical *p)
{
	return p->from.magic == SHARE_MAGIC;
}

/* Without a gap. The driver keeps what was registered, whatever becomes of its addresses. */
static int is_mapped(uint64_t address, uint64_t size)
{
	uint64_t start = address & ~(PAGE - 1), end = (address + size + PAGE - 1) & ~(PAGE - 1);

	return !msync((void *)start, end - start, MS_ASYNC);
}

/* What could not be made again. */
static int refuse_memory(const struct memory_state *s)
{
	if (s->captures)
		return agent_fail_for(LOWER_PENDING, "it is capturing a stream into a graph");
	for (const struct memory_physical *p = s->physicals; p; p = p->next) {
		if (is_imported(p))
			continue;
		if (p->foreign)
			return agent_fail(
				"it has a handle of device memory that it has not made by "
				"cuMemCreate, or shares such memory by other means than a "
				"file descriptor with a process that trecr-run has started, "
				"which cannot be restored");
		if (p->properties.location_type != LOCATION_DEVICE)
			return agent_fail("it maps memory of the host as device memory, which "
					  "cannot be restored yet");
		if (!way_to(s, p))
			/* Perhaps not yet: it is being mapped. */
			return agent_fail_for(LOWER_AGAIN,
				"it holds %lu MiB of device memory that is not mapped, mapped "
				"in part, or read-only, which cannot be restored yet",
				p->size >> 20);
	}
	for (const struct memory_reservation *r = s->reservations; r; r = r->next)
		if (in_lower_window(r->address))
			return agent_fail("it has reserved addresses at %#lx, which the driver "
					  "chose from its own range and may not return again",
				r->address);
	for (const struct memory_registration *r = s->registrations; r; r = r->next)
		if (!is_mapped(r->address, r->size))
			return agent_fail("it has registered host memory at %#lx that is no "
					  "longer mapped, "
					  "which cannot be restored",
				r->address);
	for (const struct memory_mapping *m = s->mappings; m; m = m->next)
		if (!m->physical)
			return agent_fail(
				"it maps device memory of an unknown kind at %#lx", m->address);
	return 0;
}

struct listing {
	struct allocation *list;
	uint64_t count, room;
	int full;
};

static void list_memory(struct listing *l, enum cuda_memory kind, uint64_t address,
	uint64_t size, uint32_t device)
{
	struct allocation *last = l->count ? &l->list[l->count - 1] : NULL;

	if (last && last->kind == kind && last->device == device && address >= last->address &&
		address - last->address <= last->size + GAP) {
		/* Managed memory comes in any order: it may lie in a gap. */
		if (address + size > last->address + last->size)
			last->size = last->mapped = address + size - last->address;
		return;
	}
	if (l->count == l->room) {
		l->full = 1;
		return;
	}
	l->list[l->count++] = (struct allocation){.address = address,
		.size = size,
		.mapped = size,
		.kind = kind,
		.flags = CUDA_ALLOCATION_SAVE,
		.device = device};
}

static void list_live(void *argument, struct devmem_allocation *a)
{
	if (a->state == DEVMEM_LIVE)
		list_memory(argument, CUDA_MEMORY_DEVICE, a->address, a->size, a->device);
}

/* For trecr-inspect, which looks at the records. */
static void count_objects(struct cuda_state *cuda)
{
	const struct memory_state *s = cuda->memory;

	cuda->alive[CUDA_POOL] = cuda->alive[CUDA_MEMORY_HANDLE] = 0;
	for (const struct memory_pool *p = s->pools; p; p = p->next)
		cuda->alive[CUDA_POOL]++;
	for (const struct memory_physical *p = s->physicals; p; p = p->next)
		cuda->alive[CUDA_MEMORY_HANDLE]++;
}

static void list_all(struct listing *l, struct memory_state *s)
{
	for (uint32_t device = 0; device < DEVMEM_DEVICES; device++)
		if (is_open(s, device))
			devmem_each(&s->devmem, device, list_live, l);
	for (const struct memory_physical *p = s->physicals; p; p = p->next)
		if (!is_imported(p))
			list_memory(l, CUDA_MEMORY_DEVICE, way_to(s, p)->address, p->size,
				p->properties.location);
	for (const struct memory_managed *m = s->managed; m; m = m->next)
		list_memory(l, CUDA_MEMORY_MANAGED, m->address, m->size, m->device);
}

static int list_array(void *listing, uint64_t address, uint64_t size, uint32_t device)
{
	list_memory(listing, CUDA_MEMORY_ARRAY, address, size, device);
	return 0;
}

static uint64_t count_memory(const struct memory_state *s)
{
	uint64_t count = s ? s->live : 0;

	for (const struct memory_physical *p = s ? s->physicals : NULL; p; p = p->next)
		count++;
	for (const struct memory_managed *m = s ? s->managed : NULL; m; m = m->next)
		count++;
	return count;
}

/* What the program has made room for ahead, when it allocated memory; more, with arrays. */
static int make_list_room(struct listing *l, const struct cuda_state *cuda)
{
	static struct allocation *ours;
	static uint64_t room;
	const struct memory_state *s = cuda->memory;
	uint64_t wanted =
		count_memory(s) + cuda->alive[CUDA_ARRAY] + cuda->alive[CUDA_MIPMAPPED_ARRAY];

	if (s && s->list_room >= wanted) {
		*l = (struct listing){s->list, .room = s->list_room};
		return 0;
	}
	if (records_reserve((void **)&ours, &room, wanted, sizeof(*ours)))
		return agent_fail("no memory for a list of what the program has allocated");
	*l = (struct listing){ours, .room = room};
	return 0;
}

int cuda_list_memory(struct cuda_state *cuda)
{
	struct memory_state *s = cuda->memory;
	struct listing l;

	cuda->allocations = NULL;
	cuda->allocation_count = 0;
	if ((s && refuse_memory(s)) || make_list_room(&l, cuda))
		return -1;
	if (s) {
		count_objects(cuda);
		list_all(&l, s);
	}
	if (arrays_list(cuda, list_array, &l))
		return -1;
	if (l.full)
		return agent_fail("its allocations are more than were counted");
	for (uint64_t i = 1; i < l.count; i++) {
		l.list[i - 1].next = &l.list[i];
		l.list[i].previous = &l.list[i - 1];
	}
	cuda->allocations = l.count ? l.list : NULL;
	cuda->allocation_count = l.count;
	return 0;
}

/* ---- after a restart ---- */

/* Streams and events are no more; all that they were to wait for is done. */
static void give_pending(struct memory_state *s)
{
	struct memory_order *o, *next_order;

	for (o = s->orders; o; o = next_order) {
		next_order = o->next;
		for (uint32_t i = 0; i <= DEVMEM_CLASSES; i++) {
			struct devmem_allocation *a =
				i < DEVMEM_CLASSES ? o->small[i] : o->large;

			for (struct devmem_allocation *next; a; a = next) {
				struct memory_pool *pool = a->pool;

				next = a->next;
				if (pool)
					pool->held -= devmem_room(a);
				if (pool)
					pool->allocations--;
				devmem_free(&s->devmem, NULL, a);
				s->live--;
			}
		}
		o->next = s->spare_orders;
		s->spare_orders = o;
	}
	s->orders = NULL;
	s->pending = 0;
	for (struct graph_mark *m = cuda_records()->graph_marks; m; m = m->next) {
		m->event = NULL;
		m->order = NULL;
	}
}

static uint64_t needed_on(const struct cuda_state *cuda, uint32_t device)
{
	const struct memory_state *s = cuda->memory;
	uint64_t needed = is_open(s, device) ? devmem_needed(&s->devmem, device) : 0;

	for (const struct memory_physical *p = s->physicals; p; p = p->next)
		if (p->properties.location == device && !is_imported(p))
			needed += p->size;
	for (const struct allocation *a = cuda->allocations; a; a = a->next)
		if (a->kind == CUDA_MEMORY_ARRAY && a->device == device)
			needed += a->size;
	return needed;
}

/* Before anything is made: a GPU that others use may not have room. */
static int check_room(const struct cuda_state *cuda, uint32_t device)
{
	uint64_t needed = needed_on(cuda, device);
	size_t free = 0, total = 0;
	void *popped;
	int r;

	/* Without a context there is no asking; nor has the program used the device lately. */
	if (!needed || cuda_push_context(device))
		return 0;
	r = CUDA(cuMemGetInfo_v2, (size_t *, size_t *))(&free, &total);
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* what was pushed is there */
	if (r)
		return cuda_failed("cuMemGetInfo", r);
	if (needed > free)
		return agent_fail(
			"the program needs %lu MiB of memory of GPU %u, of which %lu MiB "
			"are free",
			needed >> 20, device, (unsigned long)free >> 20);
	return 0;
}

/* Mapping device memory takes no context; registering memory of the host takes any. */
static int remake_pinned(struct cuda_state *cuda)
{
	struct memory_state *s = cuda->memory;
	uint32_t device = 0;
	void *popped;
	int r;

	if (!devmem_needed(&s->devmem, DEVMEM_PINNED))
		return 0;
	while (device < cuda->device_count && cuda_push_context(device))
		device++;
	if (device == cuda->device_count)
		return agent_fail("pinned memory without a context");
	r = devmem_remake(&s->devmem, &memory_driver, DEVMEM_PINNED);
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* what was pushed is there */
	return r ? agent_fail("pinned memory cannot be pinned again: error %d", r) : 0;
}

static int remake_parts(struct cuda_state *cuda)
{
	struct memory_state *s = cuda->memory;

	for (uint32_t i = 0; i < DEVMEM_DEVICES; i++) {
		int r = is_open(s, i) ? devmem_remake(&s->devmem, &memory_driver, i) : 0;

		if (r)
			return agent_fail(
				"memory of GPU %u cannot be allocated where it was: error %d",
				i, r);
	}
	return is_open(s, DEVMEM_PINNED) ? remake_pinned(cuda) : 0;
}

/* The driver may prefer addresses that it has left over to the one asked for. This is how often to ask. */
#define RESERVE_TRIES 4096

static int reserve_at(const struct memory_reservation *r, uint64_t *address)
{
	int result =
		CUDA(cuMemAddressReserve, (uint64_t *, size_t, size_t, uint64_t, uint64_t))(
			address, r->taken, 0, r->address, 0);

	return result ? agent_fail("the addresses at %#lx that the program had reserved cannot "
				   "be reserved again: error %d",
				r->address, result)
		      : 0;
}

static void give_addresses(const uint64_t *addresses, unsigned count, uint64_t size)
{
	while (count--)
		CUDA(cuMemAddressFree, (uint64_t, size_t))(addresses[count], size); /* ours */
}

static int reserve_again(const struct memory_reservation *r)
{
	uint64_t *elsewhere = malloc(RESERVE_TRIES * sizeof(*elsewhere)), address = 0;
	unsigned n = 0;
	int result = elsewhere ? 0 : agent_fail("no memory to reserve addresses again");

	while (!result && n < RESERVE_TRIES) {
		result = reserve_at(r, &address);
		if (result || address == r->address)
			break;
		elsewhere[n++] = address;
	}
	give_addresses(elsewhere, n, r->taken);
	free(elsewhere);
	return result || address == r->address
		       ? result
		       : agent_fail("addresses at %#lx that the program had reserved are taken",
				 r->address);
}

/* While nothing is left over of the driver's own. */
int cuda_reserve_again(const struct cuda_state *cuda)
{
	const struct memory_reservation *r = cuda->memory ? cuda->memory->reservations : NULL;

	for (; r; r = r->next)
		if (reserve_again(r))
			return -1;
	return 0;
}

static int map_again(const struct memory_mapping *m)
{
	int r = CUDA(cuMemMap, (uint64_t, size_t, size_t, uint64_t, uint64_t))(
		m->address, m->size, m->offset, m->physical->real, m->flags);

	if (r)
		return cuda_failed("cuMemMap", r);
	if (m->access_count)
		r = CUDA(cuMemSetAccess,
			(uint64_t, size_t, const struct memory_access *, size_t))(
			m->address, m->size, m->access, m->access_count);
	return r ? cuda_failed("cuMemSetAccess", r) : 0;
}

static int create_again(struct memory_physical *p)
{
	int r = CUDA(
		cuMemCreate, (uint64_t *, size_t, const struct memory_properties *, uint64_t))(
		&p->real, p->size, &p->properties, p->flags);

	return r ? cuda_failed("cuMemCreate", r) : 0;
}

/* The driver counts handles: as many again as the program has, for it to release. */
static int retain_again(const struct memory_physical *p, uint64_t address)
{
	uint64_t handle;
	int r = 0;

	for (uint32_t i = 1; i < p->references && !r; i++)
		r = CUDA(cuMemRetainAllocationHandle, (uint64_t *, void *))(
			&handle, (void *)address);
	if (!p->references)
		r = CUDA(cuMemRelease, (uint64_t))(p->real);
	return r ? cuda_failed("cuMemRetainAllocationHandle", r) : 0;
}

static int remake_mappings(struct memory_state *s)
{
	for (struct memory_physical *p = s->physicals; p; p = p->next)
		if (!is_imported(p) && create_again(p))
			return -1;
	for (struct memory_mapping *m = s->mappings; m; m = m->next)
		if (!is_imported(m->physical) && map_again(m))
			return -1;
	for (struct memory_physical *p = s->physicals; p; p = p->next)
		if (!is_imported(p) && retain_again(p, way_to(s, p)->address))
			return -1;
	return 0;
}

/* Where memory that is another process's is mapped; 0: nowhere. */
static uint64_t imported_at(const struct memory_state *s, const struct memory_physical *p)
{
	const struct memory_mapping *m = s->mappings;

	while (m && m->physical != p)
		m = m->next;
	return m ? m->address : 0;
}

int cuda_replay_imported(struct cuda_state *cuda)
{
	struct memory_state *s = cuda->memory;

	for (struct memory_mapping *m = s->mappings; m; m = m->next)
		if (is_imported(m->physical) && map_again(m))
			return -1;
	for (struct memory_physical *p = s->physicals; p; p = p->next)
		if (is_imported(p) && imported_at(s, p) && retain_again(p, imported_at(s, p)))
			return -1;
	return 0;
}

static int register_again(const struct memory_registration *r)
{
	void *popped;
	int result = CUDA(cuCtxPushCurrent_v2, (void *))(r->context);

	if (result)
		return cuda_failed("cuCtxPushCurrent", result);
	result = CUDA(cuMemHostRegister_v2, (void *, size_t, unsigned))(
		(void *)r->address, r->size, r->flags);
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* what was pushed is there */
	return result ? cuda_failed("cuMemHostRegister", result) : 0;
}

int cuda_replay_memory(struct cuda_state *cuda)
{
	struct memory_state *s = cuda->memory;

	if (!s)
		return 0;
	give_pending(s);
	for (struct memory_pool *p = s->pools; p; p = p->next)
		p->real = NULL;
	for (uint32_t part = 0; part < DEVMEM_PARTS; part++)
		if (is_open(s, part))
			devmem_forget(&s->devmem, part);
	for (uint32_t device = 0; device < cuda->device_count; device++)
		if (check_room(cuda, device))
			return -1;
	return remake_parts(cuda) || remake_mappings(s) ? -1 : 0;
}

int cuda_replay_addresses(struct cuda_state *cuda)
{
	struct memory_state *s = cuda->memory;

	for (uint32_t i = 0; s && i < DEVMEM_DEVICES; i++) {
		int r = is_open(s, i) ? memory_driver.reserve(
						devmem_device_base(i), DEVMEM_DEVICE_SIZE)
				      : 0;

		if (r)
			return agent_fail("addresses of GPU %u cannot be reserved where they "
					  "were: error %d",
				i, r);
	}
	return 0;
}

int cuda_replay_registrations(struct cuda_state *cuda)
{
	struct memory_state *s = cuda->memory;

	for (struct memory_registration *r = s ? s->registrations : NULL; r; r = r->next)
		if (register_again(r))
			return -1;
	return 0;
}
