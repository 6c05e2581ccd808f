/*
 * contexts.c - contexts, primary ones of devices and others. Each thread has a current context, as with the driver:
 * kept in thread-local storage, which is what the split process must get right.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "t/sim/object.h"
#include "t/sim/arrays.h"
#include "t/sim/device.h"
#include "t/sim/external.h"
#include "t/sim/heap.h"
#include "t/sim/linker.h"
#include "t/sim/module.h"
#include "t/sim/memory.h"
#include "t/sim/sim.h"
#include "t/sim/stream.h"

#define LIMITS   7
#define CONTEXTS 12

/* Of a size that other libraries of the lower half do not allocate, as the driver's are large. Another build of the
 * driver (t/split/rules.mk) has larger ones. */
#ifndef CONTEXT_MORE
#define CONTEXT_MORE 24008
#endif

/* Primary ones first. Allocated, as the driver does it; one that has been destroyed stays where it is for as long
 * as it may be on the stack of a thread. */
static struct context {
	struct object object;
	unsigned index;
	char more[CONTEXT_MORE];
	int references; /* of the primary one; of others, 1 */
	int was_made;   /* in this process: when it is gone it can still be pushed */
	int on_stacks;  /* of threads; until it is on none, its place is not another's */
	unsigned flags;
	size_t limits[LIMITS];
	int cache, device;
	uint64_t number;
	unsigned peers; /* a bit each */
	uint64_t local,
		local_size; /* where local variables of kernels lie: in the way of others */
} * contexts[CONTEXTS];

static unsigned primary_flags[SIM_DEVICES];
static __thread struct context *current;

#define MAX_STACK 16
static __thread struct context *stack[MAX_STACK]; /* below the current one */
static __thread int depth, capture_mode;

SIM_EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active);
SIM_EXPORT int cuCtxPushCurrent_v2(void *context);
SIM_EXPORT int cuCtxPopCurrent_v2(void **context);
int cuDevicePrimaryCtxRetain(void **context, int device);
SIM_EXPORT int cuDevicePrimaryCtxRelease_v2(int device);
SIM_EXPORT int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags);
SIM_EXPORT int cuCtxCreate_v2(void **context, unsigned flags, int device);
SIM_EXPORT int cuCtxCreate_v4(
	void **context, const uint64_t *params, unsigned flags, int device);
SIM_EXPORT int cuCtxDestroy_v2(void *context);
SIM_EXPORT int cuCtxSetLimit(int limit, size_t value);
SIM_EXPORT int cuCtxGetLimit(size_t *value, int limit);
SIM_EXPORT int cuCtxSetCacheConfig(int config);
SIM_EXPORT int cuCtxGetCacheConfig(int *config);
SIM_EXPORT int cuCtxGetFlags(unsigned *flags);
SIM_EXPORT int cuThreadExchangeStreamCaptureMode(int *mode);
SIM_EXPORT int cuCtxSetCurrent(void *context);
SIM_EXPORT int cuCtxGetCurrent(void **context);
SIM_EXPORT int cuCtxGetDevice(int *device);
SIM_EXPORT int cuCtxGetDevice_v2(int *device, void *context);
SIM_EXPORT int cuCtxGetId(void *context, uint64_t *number);
SIM_EXPORT int cuCtxEnablePeerAccess(void *peer, unsigned flags);
SIM_EXPORT int cuCtxDisablePeerAccess(void *peer);

/* What a context has for local variables of kernels, in bytes at first. "local_mib" of the machine file says
 * otherwise: what is left over of its ranges, and is taken first, is another number of blocks then. */
static uint64_t local_memory(void)
{
	return strtoul(sim_machine("local_mib", "70"), NULL, 10) << 20;
}

SIM_EXPORT void device_runs(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct context *c = current;
	uint64_t old, size = local_memory();

	pthread_mutex_lock(&lock);
	if (c && c->local_size == size) {
		old = c->local;
		c->local = heap_take_blocks(HEAP_VARIABLES, 2 * size);
		c->local_size = 2 * size;
		heap_give(HEAP_VARIABLES, old, size);
	}
	pthread_mutex_unlock(&lock);
}

/* Of what follows, and of the contexts' list; signal handlers make and end none. */
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;

/* The place of a context that is to be made. Under the lock. */
static struct context *context_in(unsigned index)
{
	for (unsigned i = 0; i < CONTEXTS; i++) {
		struct context *c = contexts[i];

		if (!c || __atomic_load_n(&c->references, __ATOMIC_ACQUIRE) ||
			__atomic_load_n(&c->on_stacks, __ATOMIC_ACQUIRE))
			continue;
		contexts[i] = NULL;
		free(c);
	}
	if (!contexts[index])
		contexts[index] = calloc(1, sizeof(*contexts[index]));
	if (contexts[index])
		contexts[index]->index = index;
	return contexts[index];
}

static int is_primary(const struct context *c)
{
	return c->index < SIM_DEVICES;
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
	int r;

	SIM_ENTER();
	r = sim_check_device(device);
	if (r)
		return r;
	*flags = primary_flags[device];
	*active = contexts[device] && contexts[device]->references;
	return 0;
}

/* As the driver has it (580): a destroyed context stays where it is on the stacks of threads, can
 * be pushed, tells its device, and is an error to all else. */
static int known(void *context, const char *function)
{
	for (unsigned i = 0; i < CONTEXTS; i++) {
		struct context *c = contexts[i];

		if (c && c == context && c->was_made)
			return 1;
	}
	return object_get(OBJECT_CONTEXT, context, function) != NULL;
}

static void put_on_top(struct context *c)
{
	if (c)
		__atomic_add_fetch(&c->on_stacks, 1, __ATOMIC_RELAXED);
	current = c;
}

static void take_off(void)
{
	__atomic_sub_fetch(&current->on_stacks, 1, __ATOMIC_RELAXED);
	current = depth ? stack[--depth] : NULL;
}

void *current_context(void)
{
	return current;
}

int current_device(void)
{
	return current->device;
}

void make_current(void *context)
{
	if (current)
		__atomic_sub_fetch(&current->on_stacks, 1, __ATOMIC_RELAXED);
	put_on_top(context);
}

int sim_have_context(void)
{
	int r = sim_ready();

	if (r)
		return r;
	if (!current)
		return SIM_INVALID_CONTEXT;
	return current->references ? 0 : SIM_CONTEXT_IS_DESTROYED;
}

static uint64_t next_number(void)
{
	static uint64_t number; /* begins somewhere else in every process */
	unsigned char start;

	if (!number && getrandom(&start, 1, 0) == 1)
		number = start;
	return ++number;
}

static void start_context(struct context *c, unsigned flags)
{
	c->flags = flags;
	memset(c->limits, 0, sizeof(c->limits));
	c->cache = 0;
	c->number = next_number();
	c->peers = 0;
	c->was_made = 1;
	c->local_size = local_memory();
	c->local = heap_take_blocks(HEAP_VARIABLES, c->local_size);
	object_adopt(OBJECT_CONTEXT, &c->object);
}

/* And all that goes with it. */
static void end_context(struct context *c)
{
	stream_wait_all();
	ranges_drop_context(c);
	module_context_gone(c);
	stream_context_gone(c);
	external_context_gone(c);
	linkers_context_gone(c);
	textures_context_gone(c);
	arrays_context_gone(c);
	pthread_mutex_lock(&contexts_lock);
	for (unsigned i = 0; i < CONTEXTS; i++)
		if (contexts[i])
			contexts[i]->peers &= ~(1u << c->index);
	pthread_mutex_unlock(&contexts_lock);
	heap_give(HEAP_VARIABLES, c->local, c->local_size);
	object_forget(&c->object);
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	struct context *c;

	SIM_ENTER();
	if (sim_check_device(device))
		return sim_check_device(device);
	pthread_mutex_lock(&contexts_lock);
	c = context_in(device);
	c->device = device;
	if (!c->references++)
		start_context(c, primary_flags[device]);
	pthread_mutex_unlock(&contexts_lock);
	*context = c;
	return 0;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	SIM_ENTER();
	if (sim_check_device(device) || !contexts[device] || !contexts[device]->references)
		return SIM_INVALID_CONTEXT;
	if (contexts[device]->references == 1)
		end_context(contexts[device]);
	__atomic_sub_fetch(&contexts[device]->references, 1, __ATOMIC_RELEASE);
	return 0;
}

int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
	SIM_ENTER();
	if (!sim_check_device(device))
		primary_flags[device] = flags;
	return sim_check_device(device);
}

/* In the first place that is free; NULL: none is. */
static struct context *take_context(unsigned flags, int device)
{
	struct context *c = NULL;

	pthread_mutex_lock(&contexts_lock);
	for (unsigned i = SIM_DEVICES; i < CONTEXTS && !c; i++) {
		c = context_in(i);
		if (c && (c->references || c->on_stacks))
			c = NULL;
	}
	if (c) {
		c->references = 1;
		c->device = device;
		start_context(c, flags);
	}
	pthread_mutex_unlock(&contexts_lock);
	return c;
}

int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
	struct context *c;

	SIM_ENTER();
	if (sim_check_device(device))
		return sim_check_device(device);
	c = take_context(flags, device);
	if (!c)
		return SIM_OUT_OF_MEMORY;
	*context = c;
	return cuCtxPushCurrent_v2(c);
}

/* Parameters are looked at only as far as it takes to see that they are there. */
int cuCtxCreate_v4(void **context, const uint64_t *params, unsigned flags, int device)
{
	SIM_ENTER();
	if (params && params[0] && !(int)params[1])
		return SIM_INVALID_VALUE;
	return cuCtxCreate_v2(context, flags, device);
}

int cuCtxDestroy_v2(void *context)
{
	struct context *c;

	SIM_ENTER();
	c = object_get(OBJECT_CONTEXT, context, __func__);
	if (!c || is_primary(c))
		return SIM_INVALID_CONTEXT;
	if (current == c)
		take_off();
	end_context(c);
	__atomic_store_n(&c->references, 0, __ATOMIC_RELEASE);
	return 0;
}

int cuCtxSetLimit(int limit, size_t value)
{
	SIM_ENTER();
	if (sim_have_context() || limit < 0 || limit >= LIMITS)
		return SIM_INVALID_VALUE;
	current->limits[limit] = value;
	return 0;
}

int cuCtxGetLimit(size_t *value, int limit)
{
	SIM_ENTER();
	if (sim_have_context() || limit < 0 || limit >= LIMITS)
		return SIM_INVALID_VALUE;
	*value = current->limits[limit];
	return 0;
}

int cuCtxSetCacheConfig(int config)
{
	SIM_ENTER();
	if (sim_have_context())
		return SIM_INVALID_CONTEXT;
	current->cache = config;
	return 0;
}

int cuCtxGetCacheConfig(int *config)
{
	SIM_ENTER();
	if (sim_have_context())
		return SIM_INVALID_CONTEXT;
	*config = current->cache;
	return 0;
}

int cuCtxGetFlags(unsigned *flags)
{
	SIM_ENTER();
	if (sim_have_context())
		return SIM_INVALID_CONTEXT;
	*flags = current->flags;
	return 0;
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
	int before = capture_mode;

	SIM_ENTER();
	capture_mode = *mode;
	*mode = before;
	return 0;
}

int cuCtxSetCurrent(void *context)
{
	SIM_ENTER();
	if (context && !known(context, __func__))
		return SIM_INVALID_CONTEXT;
	/* What was current goes; what is below it on the stack comes up when nothing takes its
	 * place. */
	if (!context && !current)
		return sim_ready();
	if (context && current)
		__atomic_sub_fetch(&current->on_stacks, 1, __ATOMIC_RELAXED);
	if (context)
		put_on_top(context);
	else
		take_off();
	return sim_ready();
}

int cuCtxPushCurrent_v2(void *context)
{
	SIM_ENTER();
	if (!known(context, __func__))
		return SIM_INVALID_CONTEXT;
	if (depth == MAX_STACK)
		return SIM_OUT_OF_MEMORY;
	stack[depth++] = current;
	put_on_top(context);
	return sim_ready();
}

int cuCtxPopCurrent_v2(void **context)
{
	SIM_ENTER();
	if (!current)
		return SIM_INVALID_CONTEXT;
	*context = current;
	take_off();
	return sim_ready();
}

int device_times_asked;

int cuCtxGetCurrent(void **context)
{
	SIM_ENTER();
	__atomic_add_fetch(&device_times_asked, 1, __ATOMIC_RELAXED);
	*context = current;
	return sim_ready();
}

static int device_of(const struct context *c, int *device)
{
	if (!c->was_made)
		return SIM_CONTEXT_IS_DESTROYED;
	*device = c->device;
	return 0;
}

int cuCtxGetDevice(int *device)
{
	int r;

	SIM_ENTER();
	__atomic_add_fetch(&device_times_asked, 1, __ATOMIC_RELAXED);
	r = sim_ready();
	return r ? r : current ? device_of(current, device) : SIM_INVALID_CONTEXT;
}

int cuCtxGetDevice_v2(int *device, void *context)
{
	SIM_ENTER();
	return context ? device_of(context, device) : cuCtxGetDevice(device);
}

int cuCtxGetId(void *context, uint64_t *number)
{
	struct context *c;

	SIM_ENTER();
	c = context ? object_get(OBJECT_CONTEXT, context, __func__) : current;
	if (c)
		*number = c->number;
	return c ? 0 : SIM_INVALID_CONTEXT;
}

/* ---- of several devices ---- */

static int change_peer(void *peer, int enable, const char *function)
{
	struct context *c = object_get(OBJECT_CONTEXT, peer, function);
	unsigned bit;

	if (!c || !current)
		return SIM_INVALID_CONTEXT;
	bit = 1u << c->index;
	if (!(current->peers & bit) == !enable)
		return enable ? SIM_PEER_ENABLED : SIM_PEER_NOT_ENABLED;
	current->peers ^= bit;
	return 0;
}

int cuCtxEnablePeerAccess(void *peer, unsigned flags)
{
	SIM_ENTER();
	return flags ? SIM_INVALID_VALUE : change_peer(peer, 1, __func__);
}

int cuCtxDisablePeerAccess(void *peer)
{
	SIM_ENTER();
	return change_peer(peer, 0, __func__);
}
