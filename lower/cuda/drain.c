/* Before a checkpoint: all work is done, and all there is can be made again. */
#include "lower/cuda/cuda.h"

static int synchronise(void *context)
{
	void *popped;
	int r = CUDA(cuCtxPushCurrent_v2, (void *))(context);

	if (r)
		return cuda_failed("cuCtxPushCurrent", r);
	r = CUDA(cuCtxSynchronize, (void))();
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* what was pushed is there */
	return r ? cuda_failed("cuCtxSynchronize", r) : 0;
}

static int has_context(const struct cuda_state *s)
{
	for (const struct object *o = s->objects; o; o = o->next)
		if (o->kind == CUDA_CONTEXT)
			return 1;
	return 0;
}

/* A context that no record knows of would be lost. */
static int refuse_unknown(const struct cuda_state *s)
{
	for (unsigned i = 0; i < s->device_count; i++) {
		unsigned flags;
		int active = 0, device, r;

		r = CUDA(cuDeviceGet, (int *, int))(&device, i);
		if (!r)
			r = CUDA(cuDevicePrimaryCtxGetState, (int, unsigned *, int *))(
				device, &flags, &active);
		if (r)
			return cuda_failed("cuDevicePrimaryCtxGetState", r);
		if (active)
			return agent_fail("it holds a CUDA context, which is not supported yet");
	}
	return 0;
}

int cuda_drain(void)
{
	struct cuda_state *s = cuda_records();

	if (!s || !s->initialised)
		return 0;
	if (!has_context(s))
		return refuse_unknown(s) ? -1 : cuda_list_memory(s);
	for (const struct object *o = s->objects; o; o = o->next)
		if (o->kind == CUDA_CONTEXT && synchronise(o->real))
			return -1;
	return cuda_list_memory(s) || cuda_save_events(s) ? -1 : cuda_save_threads(s);
}
