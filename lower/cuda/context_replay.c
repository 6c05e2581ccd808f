/*
 * context_replay.c - primary contexts are retained, others created, at the addresses of their
 * handles where those matter.
 */
#include "lower/cuda/context_replay.h"

#include "lower/cuda/call_replay.h"
#include "lower/cuda/cuda.h"
#include "lower/heap.h"
#include "shared/records.h"

#include "cuda.index.h"

int context_set(void *context)
{
	int r = CUDA(cuCtxSetCurrent, (void *))(context);

	return r ? cuda_failed("cuCtxSetCurrent", r) : 0;
}

void *context_then(const struct cuda_state *s, void *context)
{
	const struct object *o = s->objects, *any = NULL;

	if (!context)
		return NULL;
	for (; o && (o->kind != CUDA_CONTEXT || o->real != context); o = o->next)
		if (!any && o->kind == CUDA_CONTEXT)
			any = o;
	return o ? context : any ? any->real : NULL;
}

int cuda_is_primary(const struct object *o, unsigned device)
{
	return o->kind == CUDA_CONTEXT && o->made &&
	       o->made->index == INDEX_cuDevicePrimaryCtxRetain &&
	       o->made->arguments[1] == device;
}

/* The device is an argument of whatever makes a context. */
int cuda_device_of(const struct object *context)
{
	const struct call_info *info = context->made ? &cuda_info[context->made->index] : NULL;

	for (unsigned i = 0; info && i < info->param_count; i++)
		if (info->params[i].kind == API_DEVICE)
			return context->made->arguments[info->params[i].word];
	return -1;
}

/* The heap gives the same addresses again; the libc, which has what the heap has not, does not. */
static int is_of_heap(const void *block)
{
	return (uintptr_t)block - LOWER_HEAP < LOWER_HEAP_SIZE;
}

static int verify_context(const struct object *o, const void *real)
{
	if (real == o->real)
		return 0;
	if (!is_of_heap(o->real))
		return agent_fail(
			"a context is at %p here, but was at %p, as memory of the program, or "
			"ulimit -v, left no room in %#lx-%#lx, which trecr reserves for the "
			"GPU driver: have the program map it elsewhere, without a limit",
			real, o->real, LOWER_HEAP, LOWER_HEAP + LOWER_HEAP_SIZE);
	return agent_fail("a context is at %p here, but was at %p%s", real, o->real,
		RECORDS->another_driver      ? ", as the driver is another build"
		: CUDA_STATE->driver_changed ? ", where another build of the driver had it"
					     : "");
}

static int retain_primary(const struct object *o, void **context)
{
	int device = o->made->arguments[1], r = 0;

	for (uint64_t i = 0; i < o->value && !r; i++)
		r = CUDA(cuDevicePrimaryCtxRetain, (void **, int))(context, device);
	return r ? cuda_failed("cuDevicePrimaryCtxRetain", r) : 0;
}

static int release_primary(const struct object *o)
{
	int device = o->made->arguments[1], r = 0;

	for (uint64_t i = 0; i < o->value && !r; i++)
		r = CUDA(cuDevicePrimaryCtxRelease_v2, (int))(device);
	return r ? cuda_failed("cuDevicePrimaryCtxRelease", r) : 0;
}

/* What makes a context leaves it current. */
static int create_context(const struct object *o, void **context)
{
	struct call_again again = {0};
	int r = call_prepare(&again, o->made);
	void *popped;

	if (!r)
		r = call_invoke(&again);
	if (!r)
		CUDA(cuCtxPopCurrent_v2, (void **))(&popped);
	*context = again.real;
	call_finish(&again);
	return r;
}

#define NO_PRIMARY -1

static void note_taker(struct place_takers *f, void *context, int primary_of)
{
	f->list[f->count++] = (struct place_taker){context, primary_of};
}

/* In the place of a context that no longer exists. */
static int take_place(struct place_takers *f, int device)
{
	void *context = NULL, *popped;
	int r = CUDA(cuCtxCreate_v2, (void **, unsigned, int))(&context, 0, device);

	if (r)
		return cuda_failed("cuCtxCreate", r);
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* as above */
	note_taker(f, context, NO_PRIMARY);
	return 0;
}

/* The lowest place that is free is where a context is placed. For a context that was made
 * when there were others, which are gone, their places have to be taken. */
static int make_in_place(const struct object *o, struct place_takers *f)
{
	int primary = o->made->index == INDEX_cuDevicePrimaryCtxRetain, r;
	void *context = NULL;

	for (;;) {
		r = primary ? retain_primary(o, &context) : create_context(o, &context);
		if (r || context >= o->real || f->count == PLACE_TAKERS)
			return r ? r : verify_context(o, context);
		if (!primary)
			note_taker(f, context, NO_PRIMARY);
		else if (release_primary(o) || take_place(f, cuda_device_of(o)))
			return -1;
	}
}

/* ---- another build of the driver ---- */

#define ATTEMPTS 4

/* The handle is the address of what the driver has allocated for the context. */
static int is_block(void *context)
{
	return heap_block(context) == context;
}

int context_keep_places(const struct cuda_state *s)
{
	for (const struct object *o = s->objects; o && s->driver_changed; o = o->next)
		if (o->kind == CUDA_CONTEXT && heap_keep(o->real))
			return agent_fail(
				"another build of the GPU driver cannot place a context "
				"at %p",
				o->real);
	return 0;
}

static int end_context(const struct object *o, int primary, void *context)
{
	int r = primary ? release_primary(o) : CUDA(cuCtxDestroy_v2, (void *))(context);

	return r > 0 ? cuda_failed("cuCtxDestroy", r) : r;
}

/* Its contexts may be of another size, and of themselves would lie elsewhere. The driver allocates one
 * again where it has allocated it and freed it; that block is put where the context was. */
static int make_moved(const struct object *o)
{
	int primary = o->made->index == INDEX_cuDevicePrimaryCtxRetain, r = 0;
	void *context = NULL;

	for (int i = 0; i < ATTEMPTS && !r; i++) {
		r = primary ? retain_primary(o, &context) : create_context(o, &context);
		if (r || context == o->real || !is_block(context) || i + 1 == ATTEMPTS)
			break;
		r = end_context(o, primary, context);
		heap_move_next(context, o->real);
	}
	heap_move_next(NULL, NULL);
	return r ? r : verify_context(o, context);
}

/* ---- */

void context_end_takers(struct place_takers *f)
{
	while (f->count) {
		const struct place_taker *t = &f->list[--f->count];

		/* Both are ours. */
		if (t->primary_of == NO_PRIMARY)
			CUDA(cuCtxDestroy_v2, (void *))(t->context);
		else
			CUDA(cuDevicePrimaryCtxRelease_v2, (int))(t->primary_of);
	}
}

int context_make(const struct object *o)
{
	struct place_takers f = {0};
	int r = CUDA_STATE->driver_changed ? make_moved(o) : make_in_place(o, &f);

	context_end_takers(&f);
	return r;
}

/* ---- what is gone ---- */

static int is_there(
	const struct cuda_state *s, const struct place_takers *f, const void *context)
{
	const struct object *o = s->objects;

	for (unsigned i = 0; i < f->count; i++)
		if (f->list[i].context == context)
			return 1;
	while (o && (o->kind != CUDA_CONTEXT || o->real != context))
		o = o->next;
	return o != NULL;
}

static int has_primary(const struct cuda_state *s, unsigned device)
{
	const struct object *o = s->objects;

	while (o && !cuda_is_primary(o, device))
		o = o->next;
	return o != NULL;
}

/* Whether @gone was the primary context of @device, or -1. */
static int take_primary(struct place_takers *f, unsigned device, const void *gone)
{
	void *context = NULL;
	int r = CUDA(cuDevicePrimaryCtxRetain, (void **, int))(&context, device);

	if (r)
		return cuda_failed("cuDevicePrimaryCtxRetain", r);
	if (context == gone)
		note_taker(f, context, device);
	else
		CUDA(cuDevicePrimaryCtxRelease_v2, (int))(device); /* as it was */
	return context == gone;
}

/* As make_moved() does it. */
static int take_gone_moved(struct place_takers *f, void *gone)
{
	void *context;
	int r;

	if (f->count == PLACE_TAKERS)
		return 0;
	if (take_place(f, 0))
		return -1;
	context = f->list[f->count - 1].context;
	if (context == gone || !is_block(context) || heap_keep(gone))
		return 0;
	CUDA(cuCtxDestroy_v2, (void *))(f->list[--f->count].context);
	heap_move_next(context, gone);
	r = take_place(f, 0);
	heap_move_next(NULL, NULL);
	return r;
}

int context_take_gone(const struct cuda_state *s, struct place_takers *f, void *gone)
{
	int r = is_there(s, f, gone);

	if (s->driver_changed)
		return r ? 0 : take_gone_moved(f, gone);
	for (unsigned i = 0; i < s->device_count && !r && f->count < PLACE_TAKERS; i++)
		if (!has_primary(s, i))
			r = take_primary(f, i, gone);
	while (!r && f->count < PLACE_TAKERS) {
		r = take_place(f, 0);
		if (!r)
			r = f->list[f->count - 1].context == gone;
	}
	return r < 0 ? -1 : 0;
}

int context_set_primary_flags(const struct cuda_state *s)
{
	for (unsigned i = 0; i < s->device_count; i++) {
		int r = s->devices[i].primary_flags_set
				? CUDA(cuDevicePrimaryCtxSetFlags_v2, (int, unsigned))(
					  i, s->devices[i].primary_flags)
				: 0;

		if (r)
			return cuda_failed("cuDevicePrimaryCtxSetFlags", r);
	}
	return 0;
}
