/*
 * How far streams had come when graphs that allocate memory were launched, or their memory was freed: an event of ours
 * each. What becomes of the stream, of the thread whose own it was and of the context that was current does not matter
 * later on. Marks are never given back, but used again; the event of one that is not needed is destroyed.
 */
#include "shared/cuda/calls.h"
#include "shared/cuda/graph.h"
#include "shared/raw.h"
#include "stubs/cuda/memory.h"
#include "stubs/cuda/objects.h"

#include "cuda.index.h"

#define EVENT_DISABLE_TIMING 2

static struct graph_mark *take_unused(void)
{
	uint64_t mask = state_lock();
	struct graph_mark *m = CUDA_STATE->graph_marks;

	while (m && (m->holders || m->order))
		m = m->next;
	if (m)
		m->holders = 1;
	state_unlock(mask);
	return m;
}

static struct graph_mark *take_mark(void)
{
	struct graph_mark *m = take_unused();
	uint64_t mask;

	if (m)
		return m;
	m = block_new(sizeof(*m));
	if (!m)
		return NULL;
	*m = (struct graph_mark){.holders = 1};
	mask = state_lock();
	m->next = CUDA_STATE->graph_marks;
	CUDA_STATE->graph_marks = m;
	state_unlock(mask);
	return m;
}

/* An event behind all that the real @stream has been given. */
static int make_event(struct graph_mark *m, void *stream, driver_call *call)
{
	void *event = NULL, *context = NULL, *popped;
	int r = call(INDEX_cuStreamGetCtx, WORDS(WORD(stream), WORD(&context)));

	if (!r)
		r = call(INDEX_cuCtxPushCurrent_v2, WORDS(WORD(context)));
	if (r)
		return r;
	r = call(INDEX_cuEventCreate, WORDS(WORD(&event), EVENT_DISABLE_TIMING));
	if (!r) {
		r = call(INDEX_cuEventRecord, WORDS(WORD(event), WORD(stream)));
		if (r)
			call(INDEX_cuEventDestroy_v2, WORDS(WORD(event))); /* just made */
	}
	call(INDEX_cuCtxPopCurrent_v2, WORDS(WORD(&popped))); /* what was pushed is there */
	m->context = context;
	if (!r)
		m->event = event;
	return r;
}

STUB_HIDDEN struct graph_mark *graph_mark_new(void *stream, driver_call *call)
{
	struct graph_mark *m = take_mark();

	if (!m || !make_event(m, stream, call))
		return m;
	graph_mark_release(m, call);
	return NULL;
}

STUB_HIDDEN int graph_mark_again(
	const struct graph_mark *m, const void *stream, driver_call *call)
{
	if (!m || !m->event || m->order)
		return -1;
	return call(INDEX_cuEventRecord, WORDS(WORD(m->event), WORD(stream)));
}

STUB_HIDDEN void graph_mark_hold(struct graph_mark *m)
{
	uint64_t mask = state_lock();

	m->holders++;
	state_unlock(mask);
}

/* Under the lock: its event, which is to be destroyed, if nothing needs it any more. */
static void *take_event(struct graph_mark *m)
{
	void *event = m->event;

	if (m->holders || m->order)
		return NULL;
	m->event = NULL;
	return event;
}

STUB_HIDDEN void graph_mark_release(struct graph_mark *m, driver_call *call)
{
	void *event = NULL;
	uint64_t mask;

	if (!m)
		return;
	mask = state_lock();
	m->holders--;
	event = take_event(m);
	state_unlock(mask);
	if (event)
		call(INDEX_cuEventDestroy_v2, WORDS(WORD(event))); /* ours */
}

STUB_HIDDEN int graph_mark_keeps(void *event)
{
	uint64_t mask = state_lock();
	struct graph_mark *m = CUDA_STATE->graph_marks;
	int keeps = 0;

	while (m && m->event != event)
		m = m->next;
	if (m) {
		m->order = NULL;
		keeps = !take_event(m);
	}
	state_unlock(mask);
	return keeps;
}

STUB_HIDDEN void graph_marks_gone(const void *context)
{
	uint64_t mask = state_lock();

	for (struct graph_mark *m = CUDA_STATE->graph_marks; m; m = m->next)
		if (m->context == context) {
			m->event = NULL;
			m->order = NULL;
		}
	state_unlock(mask);
}
