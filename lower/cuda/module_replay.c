/*
 * module_replay.c - a module is loaded and unloaded until its variables are in place; the ways
 * to try, in order, are here.
 */
#include "lower/cuda/module_replay.h"

#include "lower/cuda/call_replay.h"
#include "lower/cuda/context_replay.h"
#include "lower/cuda/cuda.h"
#include "lower/cuda/placement.h"
#include "lower/cuda/saved_places.h"
#include "lower/heap.h"
#include "shared/cuda/memory_state.h"

/* Another one like @o, in @context, if that is a module's. */
static int load_copy(const struct object *o, void *context, struct object *copy)
{
	struct call_again again = {0};
	int r = context_set(context);

	if (!r)
		r = call_prepare(&again, o->made);
	heap_aside++;
	if (!r)
		r = call_invoke(&again);
	heap_aside--;
	*copy = *o;
	copy->real = again.real;
	call_finish(&again);
	return r;
}

static int unload_copy(const struct object *copy)
{
	int r = copy->kind == CUDA_MODULE ? CUDA(cuModuleUnload, (void *))(copy->real)
					  : CUDA(cuLibraryUnload, (void *))(copy->real);

	return r ? cuda_failed("unloading a copy of a module", r) : 0;
}

/* Whether variables of @o in @context get the addresses that they had in this way, or -1. */
static int try_way(const struct object *o, void *context, unsigned way)
{
	struct object copy;
	int r;

	if (placement_open(o, context, way) || load_copy(o, context, &copy))
		return -1;
	heap_aside++;
	r = cuda_globals_match(&copy, context);
	heap_aside--;
	return unload_copy(&copy) || placement_close() ? -1 : r;
}

int module_open(const struct object *o, void *context)
{
	unsigned way = 0;
	/* A copy of a library would have managed variables of its own once more, and take ranges
	 * for them that are meant for others. */
	int r = placement_count(o, context) < 2 || placement_has_managed(o);

	for (; !r && way < PLACEMENT_WAYS; way++)
		r = try_way(o, context, way);
	if (r < 0)
		return -1;
	return placement_open(o, context, r && way ? way - 1 : 0);
}

int module_close(const struct object *o, const void *context)
{
	if (cuda_verify_globals(o, context))
		return -1;
	placement_made(o, context);
	return placement_close();
}

int module_load(const struct object *library, void *context)
{
	if (!placement_count(library, context))
		return 0;
	return module_open(library, context) || module_close(library, context) ? -1 : 0;
}

#define EAGER 1 /* CU_MODULE_EAGER_LOADING */

int module_loads_eagerly(void)
{
	int mode = 0;

	return !CUDA(cuModuleGetLoadingMode, (int *))(&mode) && mode == EAGER;
}

int module_has_managed(const struct object *o)
{
	for (const struct cuda_global *g = o->globals; g; g = g->next)
		if (g->managed)
			return 1;
	return 0;
}
