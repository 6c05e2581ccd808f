/*
 * Events. After a restart events that had been recorded are recorded again, so that they are
 * complete, and times between them are what they were: when each was recorded is kept, in
 * milliseconds on a scale that continues through restarts as if they took no time. It is
 * measured from a mark, an event of ours in each context that is recorded at the restart, right
 * after the program's own; stubs/cuda/streams.c makes use of it.
 */
#include "lower/cuda/cuda.h"

static int has_events(const struct cuda_state *s, const struct object *context)
{
	for (const struct object *o = s->objects; o; o = o->next)
		if (o->kind == CUDA_EVENT && o->context == context->real)
			return 1;
	return 0;
}

static int record_mark(void **event)
{
	int r = CUDA(cuEventCreate, (void **, unsigned))(event, 0);

	if (r)
		return cuda_failed("cuEventCreate", r);
	r = CUDA(cuEventRecord, (void *, void *))(*event, NULL);
	if (!r)
		r = CUDA(cuEventSynchronize, (void *))(*event);
	return r ? cuda_failed("cuEventRecord", r) : 0;
}

/* Never recorded, or not made to tell times: CUDA_ERROR_INVALID_VALUE, _INVALID_HANDLE; or
 * recorded in a graph: CUDA_ERROR_STREAM_CAPTURE_... */
static int tells_no_time(int r)
{
	return r == 1 || r == 400 || (r >= 900 && r <= 910);
}

/* @now is the time of the event @mark. */
static int save_event(struct object *o, const struct object *context, void *mark, double now)
{
	float ago = 0, since = 0;
	int r = CUDA(cuEventElapsedTime, (float *, void *, void *))(&ago, o->real, mark);

	o->flags &= ~CUDA_OBJECT_RECORDED;
	if (tells_no_time(r))
		return 0;
	if (r)
		return cuda_failed("cuEventElapsedTime", r);
	o->flags |= CUDA_OBJECT_RECORDED;
	if (o->flags & CUDA_OBJECT_RESTORED && context->mark &&
		!CUDA(cuEventElapsedTime, (float *, void *, void *))(
			&since, context->mark, o->real) &&
		since <= 0)
		return 0; /* its time is known better */
	o->time = now - ago;
	return 0;
}

static int save_context(struct cuda_state *s, struct object *context)
{
	float since = 0;
	double now;
	void *mark;
	int r = 0;

	if (record_mark(&mark))
		return -1;
	if (context->mark)
		CUDA(cuEventElapsedTime, (float *, void *, void *))
	(&since, context->mark, mark);
	now = context->time + since;
	for (struct object *o = s->objects; o && !r; o = o->next)
		if (o->kind == CUDA_EVENT && o->context == context->real)
			r = save_event(o, context, mark, now);
	context->saved_time = now;
	CUDA(cuEventDestroy_v2, (void *))(mark); /* ours: it is there */
	return r;
}

static int replay_context(struct cuda_state *s, struct object *context)
{
	int r = 0;

	for (struct object *o = s->objects; o && !r; o = o->next) {
		if (o->kind != CUDA_EVENT || o->context != context->real)
			continue;
		o->flags &= ~CUDA_OBJECT_RESTORED;
		if (!(o->flags & CUDA_OBJECT_RECORDED))
			continue;
		r = CUDA(cuEventRecord, (void *, void *))(o->real, NULL);
		o->flags |= CUDA_OBJECT_RESTORED;
	}
	if (r)
		return cuda_failed("cuEventRecord", r);
	context->time = context->saved_time;
	return record_mark(&context->mark);
}

static int each_context(struct cuda_state *s, int (*act)(struct cuda_state *, struct object *))
{
	int r = 0;

	for (struct object *o = s->objects; o && !r; o = o->next) {
		void *popped;

		if (o->kind != CUDA_CONTEXT || !has_events(s, o))
			continue;
		r = CUDA(cuCtxPushCurrent_v2, (void *))(o->real);
		if (r)
			return cuda_failed("cuCtxPushCurrent", r);
		r = act(s, o);
		CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* what was pushed is there */
	}
	return r;
}

int cuda_save_events(struct cuda_state *s)
{
	return each_context(s, save_context);
}

/* Marks of contexts whose events are all gone would be of the driver before. */
int cuda_replay_events(struct cuda_state *s)
{
	for (struct object *o = s->objects; o; o = o->next)
		o->mark = NULL;
	return each_context(s, replay_context);
}
