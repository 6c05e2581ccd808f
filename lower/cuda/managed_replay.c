/* Managed memory: allocated again where it was (placement.h), and what is known of it. */
#include "lower/cuda/cuda.h"
#include "lower/cuda/placement.h"
#include "shared/cuda/memory_state.h"

static int allocate_again(const struct memory_managed *m)
{
	uint64_t address = 0;
	int r = CUDA(cuMemAllocManaged, (uint64_t *, size_t, unsigned))(
		&address, m->size, m->flags);

	if (r)
		return cuda_failed("cuMemAllocManaged", r);
	return address == m->address
		       ? 0
		       : agent_fail("managed memory is at %#lx here, but was at %#lx", address,
				 m->address);
}

static int advise_again(const struct memory_advice *a)
{
	int r = a->with_location ? CUDA(cuMemAdvise_v2, (uint64_t, size_t, int, uint64_t))(
					   a->address, a->size, a->advice, a->where)
				 : CUDA(cuMemAdvise, (uint64_t, size_t, int, int))(
					   a->address, a->size, a->advice, a->where);

	return r ? cuda_failed("cuMemAdvise", r) : 0;
}

int cuda_make_managed(const struct memory_managed *m)
{
	void *popped;
	int r;

	if (placement_open_managed(m))
		return -1;
	r = CUDA(cuCtxPushCurrent_v2, (void *))(m->context);
	if (r)
		return cuda_failed("cuCtxPushCurrent", r);
	r = allocate_again(m);
	if (!r)
		r = placement_close();
	for (const struct memory_advice *a = m->advice; a && !r; a = a->next)
		r = advise_again(a);
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* what was pushed is there */
	return r;
}

/* To a stream, which has been made again by now. */
static int attach_again(const struct memory_managed *m)
{
	void *stream = m->stream, *popped;
	int r = CUDA(cuCtxPushCurrent_v2, (void *))(m->attached_in);

	if (r)
		return cuda_failed("cuCtxPushCurrent", r);
	if (in_records_window((uintptr_t)stream))
		stream = ((struct object *)stream)->real;
	r = CUDA(cuStreamAttachMemAsync, (void *, uint64_t, size_t, unsigned))(
		stream, m->address, 0, m->attached_flags);
	if (!r)
		r = CUDA(cuStreamSynchronize, (void *))(stream);
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* what was pushed is there */
	return r ? cuda_failed("cuStreamAttachMemAsync", r) : 0;
}

int cuda_attach_managed(const struct cuda_state *s)
{
	for (const struct memory_managed *m = s->memory ? s->memory->managed : NULL; m;
		m = m->next)
		if (m->attached_flags && attach_again(m))
			return -1;
	return 0;
}
