#include "lower/cuda/context_replay.h"

#include "lower/cuda/call_replay.h"
#include "lower/cuda/cuda.h"

#include "shared/cuda/call_index.inc"

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

static int verify_context(const struct object *o, const void *real)
{
	return real == o->real
		       ? 0
		       : agent_fail("a context is at %p here, but was at %p", real, o->real);
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

/* So many that are no more may have lain below one. */
#define PLACE_TAKERS 8

struct place_takers {
	void *contexts[PLACE_TAKERS];
	unsigned count;
};

/* In the place of a context that no longer exists. */
static int take_place(struct place_takers *f, const struct object *o)
{
	int r = CUDA(cuCtxCreate_v2, (void **, unsigned, int))(
		&f->contexts[f->count], 0, cuda_device_of(o));

	void *popped;

	if (r)
		return cuda_failed("cuCtxCreate", r);
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* as above */
	f->count++;
	return 0;
}

/* The lowest place that is free is where a context is placed. One that was made when there
 * were others, which are no more, has to find their places taken. */
static int make_in_place(const struct object *o, struct place_takers *f)
{
	int primary = o->made->index == INDEX_cuDevicePrimaryCtxRetain, r;
	void *context = NULL;

	for (;;) {
		r = primary ? retain_primary(o, &context) : create_context(o, &context);
		if (r || context >= o->real || f->count == PLACE_TAKERS)
			return r ? r : verify_context(o, context);
		if (!primary)
			f->contexts[f->count++] = context;
		else if (release_primary(o) || take_place(f, o))
			return -1;
	}
}

int context_make(const struct object *o)
{
	struct place_takers f = {0};
	int r = make_in_place(o, &f);

	while (f.count)
		CUDA(cuCtxDestroy_v2, (void *))(f.contexts[--f.count]); /* ours */
	return r;
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
