/*
 * The functions that kernel nodes may have, by the driver's handles: functions that the program has
 * asked for, kernels, and the functions that kernels in use are in their contexts. (A launch of
 * a kernel that is captured leaves its function in the graph, which the program may never have
 * seen.)
 */
#include <stdlib.h>

#include "lower/cuda/saved_graphs.h"
#include "lower/cuda/growing_list.h"

static struct {
	struct graph_function *list;
	size_t count, room;
	int known;
} functions;

void graph_functions_forget(void)
{
	functions.known = 0;
	functions.count = 0;
}

static int add_function(void *real, void *context, struct object *o, int of_kernel)
{
	if (list_reserve(&functions.list, functions.count, &functions.room,
		    sizeof(*functions.list), "to look up functions in CUDA graphs"))
		return -1;
	functions.list[functions.count++] =
		(struct graph_function){real, context, o, of_kernel};
	return 0;
}

/* Functions of kernels in the current @context. */
static int add_kernels(const struct cuda_state *s, void *context)
{
	for (struct object *o = s->objects; o; o = o->next) {
		void *function = NULL;

		if (o->kind != CUDA_KERNEL || !(o->flags & CUDA_OBJECT_USED))
			continue;
		/* Where it cannot be had, it is in no graph. */
		if (!CUDA(cuKernelGetFunction, (void **, void *))(&function, o->real) &&
			add_function(function, context, o, 1))
			return -1;
	}
	return 0;
}

static int add_context(const struct cuda_state *s, void *context)
{
	void *popped;
	int r = CUDA(cuCtxPushCurrent_v2, (void *))(context);

	if (r)
		return cuda_failed("cuCtxPushCurrent", r);
	r = add_kernels(s, context);
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* what was pushed is there */
	return r;
}

/* Of two functions with the same handle, the first is the function that the program has asked for. */
static int by_real(const void *a, const void *b)
{
	const struct graph_function *x = a, *y = b;

	if (x->real != y->real)
		return x->real < y->real ? -1 : 1;
	return x->of_kernel - y->of_kernel;
}

static int look_up(const struct cuda_state *s)
{
	for (struct object *o = s->objects; o; o = o->next) {
		int r = 0;

		if (o->kind == CUDA_FUNCTION || o->kind == CUDA_KERNEL)
			r = add_function(o->real, o->context, o, 0);
		else if (o->kind == CUDA_CONTEXT)
			r = add_context(s, o->real);
		if (r)
			return -1;
	}
	qsort(functions.list, functions.count, sizeof(*functions.list), by_real);
	functions.known = 1;
	return 0;
}

const struct graph_function *graph_function(const struct cuda_state *s, const void *real)
{
	size_t low = 0, high;

	if (!functions.known && look_up(s))
		return NULL;
	for (high = functions.count; low < high;) {
		size_t middle = (low + high) / 2;

		if ((uintptr_t)functions.list[middle].real < (uintptr_t)real)
			low = middle + 1;
		else
			high = middle;
	}
	return low < functions.count && functions.list[low].real == real ? &functions.list[low]
									 : NULL;
}
