/*
 * Managed memory, and variables of that kind: they lie in the lower half's window, where the
 * driver finds room for them, and have to come to lie there again.
 */
#include "loader/lower/core.h"
#include "lower/cuda/cuda.h"
#include "stubs/cuda/memory_state.h"

/* The driver (580) takes room for managed memory in multiples of this, aligned to it, of which
 * it gives back what alignment leaves; and finds room in there for what comes later. */
#define MANAGED_CHUNK (32ul << 20)

static uint64_t chunk_of(uint64_t address)
{
	return address & ~(MANAGED_CHUNK - 1);
}

void cuda_wish_managed(const struct object *o)
{
	uint64_t lowest = UINT64_MAX;

	for (; o; o = o->parent)
		for (const struct cuda_global *g = o->globals; g; g = g->next)
			if (g->managed && g->address < lowest)
				lowest = g->address;
	table->core->driver_wish(lowest == UINT64_MAX ? 0 : chunk_of(lowest), MANAGED_CHUNK);
}

static int allocate_again(const struct memory_managed *m)
{
	uint64_t address = 0;
	int r;

	table->core->driver_wish(chunk_of(m->address), MANAGED_CHUNK);
	r = CUDA(cuMemAllocManaged, (uint64_t *, size_t, unsigned))(
		&address, m->size, m->flags);
	table->core->driver_wish(0, MANAGED_CHUNK);
	if (r)
		return cuda_failed("cuMemAllocManaged", r);
	return address == m->address
		       ? 0
		       : agent_fail("managed memory comes to lie at %#lx here, it was at %#lx",
				 address, m->address);
}

static int advise_again(const struct memory_advice *a)
{
	int r = a->with_location ? CUDA(cuMemAdvise_v2, (uint64_t, size_t, int, uint64_t))(
					   a->address, a->size, a->advice, a->where)
				 : CUDA(cuMemAdvise, (uint64_t, size_t, int, int))(
					   a->address, a->size, a->advice, a->where);

	return r ? cuda_failed("cuMemAdvise", r) : 0;
}

/* Any context of the device will do. */
int cuda_make_managed(const struct memory_managed *m)
{
	void *popped;
	int r;

	if (cuda_push_context(m->device))
		return -1;
	r = allocate_again(m);
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

static int holds_any(const struct cuda_state *s)
{
	if (s->memory && s->memory->managed)
		return 1;
	for (const struct object *o = s->objects; o; o = o->next)
		for (const struct cuda_global *g = o->globals; g; g = g->next)
			if (g->managed)
				return 1;
	return 0;
}

int cuda_refuse_managed(const struct cuda_state *s)
{
	return s->managed_lost && holds_any(s)
		       ? agent_fail(
				 "it holds managed memory and has freed some, which cannot be "
				 "restored yet")
		       : 0;
}
