/*
 * The state of the process's memory (memory_state.h), and what all that serves allocations has
 * in common.
 */
#include "stubs/cuda/memory.h"

#include "shared/raw.h"
#include "stubs/cuda/objects.h"
#include "stubs/cuda/sharing.h"

#define ATTRIBUTE_FILES                                                                        \
	103                /* CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED */
#define ATTRIBUTE_RDMA 110 /* CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED */

/* Device memory that nobody has is kept up to this part of the device's: more would be missing
 * to other processes, less would make programs wait that allocate and free in turns. */
#define CACHE_PART 16
/* Of pinned memory; the program's image grows by it. */
#define CACHE_PINNED (64ul << 20)

/* ---- the driver, for the allocator ---- */

/* NULL: there is none. */
static void *any_context(void)
{
	uint64_t mask = state_lock();
	const struct object *o = CUDA_STATE->objects;

	while (o && (o->kind != CUDA_CONTEXT || is_dead(o->real)))
		o = o->next;
	state_unlock(mask);
	return o ? o->real : NULL;
}

/* Does not work while a context that no longer exists is current: the thread gets another one for it. Memory that stayed
 * registered could not be registered again. */
static int unregister_at_driver(void *address)
{
	void *context = NULL;
	int r = real_cuMemHostUnregister(address);

	if (r != CUDA_ERROR_CONTEXT_IS_DESTROYED)
		return r;
	context = any_context();
	if (!context || real_cuCtxPushCurrent_v2(context))
		return r; /* with the last context, all that was registered is gone */
	r = real_cuMemHostUnregister(address);
	real_cuCtxPopCurrent_v2(&context); /* what was pushed is there */
	return r;
}

const struct memory_functions *memory_functions(void)
{
	static const struct memory_functions functions = {
		.cuCtxGetCurrent = real_cuCtxGetCurrent,
		.cuMemAddressReserve = real_cuMemAddressReserve,
		.cuMemAddressFree = real_cuMemAddressFree,
		.cuMemCreate = snapshot_create,
		.cuMemRelease = real_cuMemRelease,
		.cuMemMap = real_cuMemMap,
		.cuMemUnmap = real_cuMemUnmap,
		.cuMemSetAccess = real_cuMemSetAccess,
		.cuMemHostRegister_v2 = real_cuMemHostRegister_v2,
		.cuMemHostUnregister = unregister_at_driver,
		.allocate = records_alloc,
		.maps_pinned = 1,
	};

	return &functions;
}

/* ---- the state ---- */

static struct memory_state *make_state(void)
{
	struct memory_state *mine = records_alloc(sizeof(*mine)), *theirs = NULL;

	if (!mine || __atomic_compare_exchange_n(&CUDA_STATE->memory, &theirs, mine, 0,
			     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return mine;
	return theirs; /* another thread was faster: what we made is lost */
}

static int lock_memory(struct memory_state *s)
{
	uint64_t self = raw_read_fs(), owner = 0;

	while (!__atomic_compare_exchange_n(
		&s->lock, &owner, self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		if (owner == self)
			return -1;
		raw(SYS_sched_yield);
		owner = 0;
	}
	return 0;
}

struct memory_state *memory_lock(int make)
{
	struct memory_state *s = memory_state();

	if (!s && make)
		s = make_state();
	if (!s)
		return NULL;
	if (!lock_memory(s))
		return s;
	crossing_complain(
		"cuMem*", "called by a signal handler that has interrupted such a call");
	return NULL;
}

void memory_unlock(struct memory_state *s)
{
	__atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
}

static uint64_t cache_of(uint32_t device)
{
	return device == DEVMEM_PINNED ? CACHE_PINNED
				       : CUDA_STATE->devices[device].memory / CACHE_PART;
}

/* A driver that does not know the attribute cannot do it either. */
static int has_attribute(uint32_t device, int attribute)
{
	int value = 0;

	return device != DEVMEM_PINNED &&
	       !real_cuDeviceGetAttribute(&value, attribute, device) && value;
}

static int open_part(struct memory_state *s, uint32_t device)
{
	if (device >= DEVMEM_PARTS)
		return CUDA_ERROR_INVALID_DEVICE;
	if (has_attribute(device, ATTRIBUTE_RDMA))
		s->rdma |= 1u << device;
	if (has_attribute(device, ATTRIBUTE_FILES))
		s->shareable |= 1u << device;
	return devmem_open(&s->devmem, &memory_driver, device, cache_of(device));
}

/* Part @device of the allocator, ready to be used. 0 or an error. */
static int memory_open(struct memory_state *s, uint32_t device)
{
	return s->devmem.devices[device].ready ? 0 : open_part(s, device);
}

/* There is room for one more allocation in the list that is made at a checkpoint. */
static int make_list_room(struct memory_state *s)
{
	uint64_t room = s->list_room ? s->list_room * 2 : 1024;
	struct allocation *list;

	if (s->live < s->list_room)
		return 0;
	list = records_alloc(room * sizeof(*list));
	if (!list)
		return DEVMEM_NO_MEMORY;
	s->list = list;
	s->list_room = room;
	return 0;
}

void *memory_record(void **spare, uint64_t size, uint64_t next_offset)
{
	char *record = *spare;

	if (make_list_room(CUDA_STATE->memory))
		return NULL;
	if (!record)
		return records_alloc(size);
	*spare = *(void **)(record + next_offset);
	raw_zero(record, size);
	return record;
}

/* ---- contexts and captures ---- */

/*
 * While a stream is being captured into a graph, the driver refuses to allocate, and to wait,
 * unless the thread has said that it knows better; and it does the waiting that is allowed
 * itself. An allocation of the driver's own finds out, at the price of one.
 */
static int ask_driver(void)
{
	uint64_t address = 0;
	int r = real_cuMemAlloc_v2(&address, 1);

	if (!r && address)
		r = real_cuMemFree_v2(address);
	return r;
}

static int is_capturing(void)
{
	struct memory_state *s = memory_state();

	return s && __atomic_load_n(&s->captures, __ATOMIC_RELAXED);
}

int memory_context(void **context, int *device)
{
	int status, r;

	/* The cheapest call that says what is wrong with the context. */
	r = real_cuStreamIsCapturing(NULL, &status);
	if (r && r != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
		return r;
	r = real_cuCtxGetCurrent(context);
	if (!r)
		r = *context ? real_cuCtxGetDevice(device) : CUDA_ERROR_INVALID_CONTEXT;
	if (!r && is_capturing())
		r = ask_driver();
	return r;
}

int memory_device_of(void *context, int *device)
{
	void *popped;
	int r = real_cuCtxPushCurrent_v2(context);

	if (r)
		return r;
	r = real_cuCtxGetDevice(device);
	real_cuCtxPopCurrent_v2(&popped); /* what was pushed is there */
	return r;
}

int memory_synchronise(void *context)
{
	void *current = NULL;
	int r = real_cuCtxGetCurrent(&current);

	if (r)
		return r;
	if (!context)
		context = current;
	if (context != current)
		r = real_cuCtxPushCurrent_v2(context);
	if (r)
		return r;
	r = is_capturing() ? ask_driver() : real_cuCtxSynchronize();
	if (context != current)
		real_cuCtxPopCurrent_v2(&context); /* what was pushed is there */
	return r;
}

int memory_capture_begins(int r)
{
	struct memory_state *s = r ? NULL : memory_lock(1);

	if (s) {
		__atomic_add_fetch(&s->captures, 1, __ATOMIC_RELAXED);
		memory_unlock(s);
	}
	return r;
}

void memory_capture_ends(void)
{
	struct memory_state *s = memory_lock(0);

	if (!s)
		return;
	if (s->captures)
		__atomic_sub_fetch(&s->captures, 1, __ATOMIC_RELAXED);
	memory_unlock(s);
}

/* ---- allocations ---- */

int memory_new(struct memory_state *s, uint32_t device, uint64_t size, void *context,
	struct devmem_allocation **allocation)
{
	int r = memory_open(s, device);

	if (!r)
		r = make_list_room(s);
	if (!r)
		r = devmem_alloc(&s->devmem, &memory_driver, device, size, allocation);
	if (r == DEVMEM_NO_MEMORY && s->pending && !s->captures) {
		memory_collect(s, 1);
		r = devmem_alloc(&s->devmem, &memory_driver, device, size, allocation);
	}
	if (r)
		return r;
	s->live++;
	(*allocation)->context = context;
	return 0;
}

int memory_allocate(
	uint32_t device, uint64_t size, void *context, uint32_t flags, uint64_t *address)
{
	struct memory_state *s = memory_lock(1);
	struct devmem_allocation *a;
	int r;

	if (!s)
		return CUDA_ERROR_UNKNOWN;
	r = memory_new(s, device, size, context, &a);
	if (!r) {
		a->flags = flags;
		*address = a->address;
	}
	memory_unlock(s);
	return r;
}

struct devmem_allocation *memory_claim(struct memory_state *s, uint64_t address)
{
	struct devmem_allocation *a = devmem_find(&s->devmem, address);

	if (!a || a->address != address)
		return NULL;
	a->state = DEVMEM_PENDING;
	return a;
}

void memory_give(struct memory_state *s, struct devmem_allocation *a)
{
	if (a->pool)
		memory_leave_pool(s, a);
	s->live--;
	devmem_free(&s->devmem, &memory_driver, a);
}

int memory_is_of_graph(uint64_t address)
{
	struct memory_state *s = memory_lock(0);
	const struct devmem_allocation *a = s ? devmem_find(&s->devmem, address) : NULL;
	int is = a && a->address == address && a->flags & MEMORY_OF_GRAPH;

	if (s)
		memory_unlock(s);
	return is;
}

int memory_free(uint64_t address)
{
	struct memory_state *s = memory_lock(0);
	struct devmem_allocation *a = s ? memory_claim(s, address) : NULL;
	int r;

	if (s)
		memory_unlock(s);
	if (!a)
		return CUDA_ERROR_NOT_FOUND;
	r = memory_synchronise(a->pool ? NULL : a->context);
	s = memory_lock(0);
	if (!s)
		return CUDA_ERROR_UNKNOWN;
	if (r) {
		a->state = DEVMEM_LIVE;
	} else {
		if (a->pool)
			memory_unaccount(a);
		memory_give(s, a);
	}
	memory_unlock(s);
	return r;
}

struct gone {
	struct memory_state *s;
	void *context;
};

static void give_if_gone(void *argument, struct devmem_allocation *a)
{
	struct gone *g = argument;

	if (a->state == DEVMEM_LIVE && a->context == g->context && !a->pool)
		memory_give(g->s, a);
}

static void drop_registrations(struct memory_state *s, void *context)
{
	struct memory_registration **p = &s->registrations, *r;

	while ((r = *p)) {
		if (r->context != context) {
			p = &r->next;
			continue;
		}
		*p = r->next;
		r->next = s->spare_registrations;
		s->spare_registrations = r;
	}
}

/* Pinned memory of other contexts' in extents that @context had registered, by @current. */
static void pin_extents(struct memory_state *s, const void *context, const void *current)
{
	struct devmem_device *d = &s->devmem.devices[DEVMEM_PINNED];

	for (uint32_t i = 0; i < d->top; i++) {
		struct devmem_granule *g = &d->granules[i];

		if (g->state == DEVMEM_UNMAPPED || g->extent != i ||
			g->handle != PINNED_BY(context))
			continue;
		if (real_cuMemHostRegister_v2((void *)devmem_address(d, i),
			    g->length * DEVMEM_GRANULE, PINNED_FLAGS))
			crossing_complain("cuMemHostRegister",
				"pinned memory is no longer pinned, with "
				"a context that no longer exists");
		g->handle = PINNED_BY(current);
	}
}

/* What this thread has as its context may be gone. Where there is no other, nobody has pinned memory any
 * more. */
static void pin_again(struct memory_state *s, const void *context)
{
	void *current = any_context(), *popped;

	if (!current || real_cuCtxPushCurrent_v2(current))
		return;
	pin_extents(s, context, current);
	real_cuCtxPopCurrent_v2(&popped); /* what was pushed is there */
}

void memory_context_gone(void *context)
{
	struct memory_state *s = memory_lock(0);
	struct gone g = {s, context};

	if (!s)
		return;
	for (uint32_t device = 0; device < DEVMEM_PARTS; device++)
		if (s->devmem.devices[device].ready)
			devmem_each(&s->devmem, device, give_if_gone, &g);
	if (s->devmem.devices[DEVMEM_PINNED].ready) {
		devmem_trim(&s->devmem, &memory_driver, DEVMEM_PINNED);
		pin_again(s, context);
	}
	memory_orders_gone(s, context);
	drop_registrations(s, context);
	memory_managed_gone(s, context);
	imports_gone(s, context);
	memory_unlock(s);
	graph_memory_context_gone();
}
