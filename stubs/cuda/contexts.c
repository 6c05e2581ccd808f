/*
 * Contexts. The program holds the driver's own handles: they are in the driver's hidden tables'
 * hands, too. Each device's primary context is counted: it is made once and retained as often.
 */
#include "shared/cuda/calls.h"
#include "stubs/cuda/memory.h"
#include "stubs/cuda/objects.h"

#include "cuda.index.h"

static struct object *find_primary(int device)
{
	uint64_t mask = state_lock();
	struct object *o = CUDA_STATE->objects;

	while (o && (o->kind != CUDA_CONTEXT || !o->made ||
			    o->made->index != INDEX_cuDevicePrimaryCtxRetain ||
			    (int)o->made->arguments[1] != device))
		o = o->next;
	state_unlock(mask);
	return o;
}

static int note_primary(void *context, int device)
{
	struct object *o = object_new(CUDA_CONTEXT, CUDA_OBJECT_REAL);
	const uint64_t arguments[CALL_WORDS] = {0, device};

	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	o->made = call_new(INDEX_cuDevicePrimaryCtxRetain, arguments);
	if (!o->made) {
		object_drop(o);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	o->context = context;
	o->value = 1;
	object_live(o, context);
	return 0;
}

int body_cuDevicePrimaryCtxRetain(void **context, int device)
{
	struct object *o;
	uint64_t mask;
	int r = real_cuDevicePrimaryCtxRetain(context, device);

	if (r)
		return r;
	/* One at a time, so that a context has one object. */
	mask = guarded_lock(&CUDA_STATE->primaries_lock);
	o = find_primary(device);
	if (o)
		o->value++;
	else
		r = note_primary(*context, device);
	guarded_unlock(&CUDA_STATE->primaries_lock, mask);
	if (r)
		real_cuDevicePrimaryCtxRelease_v2(device); /* as if it had not been retained */
	return r;
}

/* The driver destroys it with the last release; @all: whatever the count. */
static void note_released(int device, int all)
{
	uint64_t mask = guarded_lock(&CUDA_STATE->primaries_lock);
	struct object *o = find_primary(device);

	if (o && (all || !--o->value))
		objects_kill_context(o->real);
	guarded_unlock(&CUDA_STATE->primaries_lock, mask);
}

static int release_primary(int (*release)(int), int device, int all)
{
	int r;

	snapshot_wait();
	query_cache_invalidate();
	r = release(device);
	query_cache_invalidate();
	if (!r)
		note_released(device, all);
	return r;
}

int body_cuDevicePrimaryCtxRelease(int device)
{
	return release_primary(real_cuDevicePrimaryCtxRelease, device, 0);
}

int body_cuDevicePrimaryCtxRelease_v2(int device)
{
	return release_primary(real_cuDevicePrimaryCtxRelease_v2, device, 0);
}

int body_cuDevicePrimaryCtxReset(int device)
{
	return release_primary(real_cuDevicePrimaryCtxReset, device, 1);
}

int body_cuDevicePrimaryCtxReset_v2(int device)
{
	return release_primary(real_cuDevicePrimaryCtxReset_v2, device, 1);
}

/* Before or after the context is made. */
static int set_primary_flags(int (*set)(int, unsigned), int device, unsigned flags)
{
	int r;

	query_cache_invalidate();
	r = set(device, flags);
	query_cache_invalidate();
	if (r || (unsigned)device >= CUDA_DEVICES)
		return r;
	CUDA_STATE->devices[device].primary_flags = flags;
	CUDA_STATE->devices[device].primary_flags_set = 1;
	return 0;
}

int body_cuDevicePrimaryCtxSetFlags(int device, unsigned flags)
{
	return set_primary_flags(real_cuDevicePrimaryCtxSetFlags, device, flags);
}

int body_cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
	return set_primary_flags(real_cuDevicePrimaryCtxSetFlags_v2, device, flags);
}

/* Parts of a device, which the program holds as the driver has written them: they may be of
 * this process. Once is enough to know. */
int body_cuDevSmResourceSplitByCount(void *result, unsigned *groups, const void *input,
	void *remaining, unsigned flags, unsigned least)
{
	int r = real_cuDevSmResourceSplitByCount(
		result, groups, input, remaining, flags, least);
	struct object *o;

	if (r || !result || !state_usable())
		return r;
	o = object_new(CUDA_RESOURCE_DESCRIPTION, CUDA_OBJECT_REAL | CUDA_OBJECT_LOST);
	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	object_live_once(o, NULL);
	return 0;
}

/* Parameters that lead to more parameters are not kept. */
int body_cuCtxCreate_v4(
	void **context, struct context_params *params, unsigned flags, int device)
{
	const uint64_t arguments[CALL_WORDS] = {
		(uint64_t)context, (uint64_t)params, flags, device};
	int r;

	if (!params || (!params->affinities && !params->affinity_count && !params->graphics))
		return cuda_perform(INDEX_cuCtxCreate_v4, arguments);
	query_cache_invalidate();
	r = real_cuCtxCreate_v4(context, params, flags, device);
	query_cache_invalidate();
	return r ? r : object_lost(CUDA_CONTEXT, *context);
}
