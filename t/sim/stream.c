#include "t/sim/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "t/sim/device.h"
#include "t/sim/object.h"
#include "t/sim/sim.h"

struct work {
	void (*run)(void *data);
	void *data;
	struct work *next;
};

struct stream {
	struct object object;
	pthread_t thread;
	struct work *first, **last;
	unsigned long queued, done;
	int ending;
	struct stream *next;
};

struct event {
	struct object object;
	struct stream *stream;
	unsigned long after; /* so many works of the stream done */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct stream *streams, *default_stream;

SIM_EXPORT int cuStreamCreate(void **stream, unsigned flags);
SIM_EXPORT int cuStreamDestroy_v2(void *stream);
SIM_EXPORT int cuStreamSynchronize(void *stream);
SIM_EXPORT int cuStreamQuery(void *stream);
SIM_EXPORT int cuCtxSynchronize(void);
SIM_EXPORT int cuEventCreate(void **event, unsigned flags);
SIM_EXPORT int cuEventRecord(void *event, void *stream);
SIM_EXPORT int cuEventSynchronize(void *event);
SIM_EXPORT int cuEventDestroy_v2(void *event);
SIM_EXPORT int cuEventQuery(void *event);
SIM_EXPORT int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
SIM_EXPORT int cuStreamGetCtx(void *stream, void **context);
SIM_EXPORT int cuStreamIsCapturing(void *stream, int *status);
SIM_EXPORT int cuLaunchHostFunc(void *stream, void (*function)(void *), void *data);
SIM_EXPORT int cuStreamAddCallback(
	void *stream, void (*function)(void *, int, void *), void *data, unsigned flags);

static void *work_off(void *argument)
{
	struct stream *s = argument;

	pthread_mutex_lock(&lock);
	while (!s->ending || s->first) {
		struct work *w = s->first;

		if (!w) {
			pthread_cond_wait(&changed, &lock);
			continue;
		}
		s->first = w->next;
		if (!s->first)
			s->last = &s->first;
		pthread_mutex_unlock(&lock);
		w->run(w->data);
		free(w->data);
		free(w);
		pthread_mutex_lock(&lock);
		s->done++;
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Under the lock. */
static struct stream *make(void)
{
	struct stream *s = object_new(OBJECT_STREAM, sizeof(*s));

	s->last = &s->first;
	s->next = streams;
	streams = s;
	pthread_create(&s->thread, NULL, work_off, s);
	return s;
}

/* Under the lock. */
static struct stream *get(void *handle, const char *function)
{
	if (handle > (void *)2) /* CU_STREAM_LEGACY, CU_STREAM_PER_THREAD */
		return object_get(OBJECT_STREAM, handle, function);
	if (!default_stream)
		default_stream = make();
	return default_stream;
}

void *stream_data(const void *data, size_t size)
{
	return memcpy(malloc(size), data, size);
}

int stream_queue(void *stream, void (*run)(void *data), void *data, const char *function)
{
	struct work *w = calloc(1, sizeof(*w));
	struct stream *s;

	w->run = run;
	w->data = data;
	pthread_mutex_lock(&lock);
	s = get(stream, function);
	if (s) {
		*s->last = w;
		s->last = &w->next;
		s->queued++;
		pthread_cond_broadcast(&changed);
	}
	pthread_mutex_unlock(&lock);
	return s ? 0 : SIM_INVALID_HANDLE;
}

static void wait_for(struct stream *s, unsigned long count)
{
	while (s->done < count)
		pthread_cond_wait(&changed, &lock);
}

int stream_wait(void *stream, const char *function)
{
	struct stream *s;

	pthread_mutex_lock(&lock);
	s = get(stream, function);
	if (s)
		wait_for(s, s->queued);
	pthread_mutex_unlock(&lock);
	return s ? 0 : SIM_INVALID_HANDLE;
}

int stream_wait_all(void)
{
	pthread_mutex_lock(&lock);
	for (struct stream *s = streams; s; s = s->next)
		wait_for(s, s->queued);
	pthread_mutex_unlock(&lock);
	return 0;
}

int cuStreamCreate(void **stream, unsigned flags)
{
	int r;

	SIM_ENTER();
	r = sim_have_context();
	if (r)
		return r;
	pthread_mutex_lock(&lock);
	*stream = make();
	pthread_mutex_unlock(&lock);
	return 0;
}

int cuStreamDestroy_v2(void *stream)
{
	struct stream *s, **p;

	SIM_ENTER();
	s = object_get(OBJECT_STREAM, stream, __func__);
	if (!s)
		return SIM_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	for (p = &streams; *p != s; p = &(*p)->next)
		;
	*p = s->next;
	s->ending = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	pthread_join(s->thread, NULL);
	object_free(s);
	return 0;
}

int cuStreamSynchronize(void *stream)
{
	SIM_ENTER();
	return stream_wait(stream, __func__);
}

int cuStreamQuery(void *stream)
{
	struct stream *s;
	int r;

	SIM_ENTER();
	pthread_mutex_lock(&lock);
	s = get(stream, __func__);
	r = !s ? SIM_INVALID_HANDLE : s->done == s->queued ? 0 : SIM_NOT_READY;
	pthread_mutex_unlock(&lock);
	return r;
}

int cuCtxSynchronize(void)
{
	int r;

	SIM_ENTER();
	r = stream_wait_all();
	module_print();
	return r;
}

int cuEventCreate(void **event, unsigned flags)
{
	SIM_ENTER();
	*event = object_new(OBJECT_EVENT, sizeof(struct event));
	return sim_have_context();
}

int cuEventRecord(void *event, void *stream)
{
	struct event *e;
	struct stream *s;

	SIM_ENTER();
	e = object_get(OBJECT_EVENT, event, __func__);
	pthread_mutex_lock(&lock);
	s = get(stream, __func__);
	if (e && s) {
		e->stream = s;
		e->after = s->queued;
	}
	pthread_mutex_unlock(&lock);
	return e && s ? 0 : SIM_INVALID_HANDLE;
}

int cuEventSynchronize(void *event)
{
	struct event *e;

	SIM_ENTER();
	e = object_get(OBJECT_EVENT, event, __func__);
	if (!e)
		return SIM_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	if (e->stream)
		wait_for(e->stream, e->after);
	pthread_mutex_unlock(&lock);
	return 0;
}

int cuEventDestroy_v2(void *event)
{
	struct event *e;

	SIM_ENTER();
	e = object_get(OBJECT_EVENT, event, __func__);
	if (e)
		object_free(e);
	return e ? 0 : SIM_INVALID_HANDLE;
}

struct host_call {
	void *stream;
	void (*function)(void *);
	void (*callback)(void *, int, void *);
	void *data;
};

static void run_host_call(void *data)
{
	struct host_call *h = data;

	if (h->callback)
		h->callback(h->stream, 0, h->data);
	else
		h->function(h->data);
}

int cuLaunchHostFunc(void *stream, void (*function)(void *), void *data)
{
	struct host_call h = {.stream = stream, .function = function, .data = data};

	SIM_ENTER();
	return stream_queue(stream, run_host_call, stream_data(&h, sizeof(h)), __func__);
}

int cuStreamAddCallback(
	void *stream, void (*function)(void *, int, void *), void *data, unsigned flags)
{
	struct host_call h = {.stream = stream, .callback = function, .data = data};

	SIM_ENTER();
	return stream_queue(stream, run_host_call, stream_data(&h, sizeof(h)), __func__);
}

int cuEventQuery(void *event)
{
	struct event *e;
	int r = SIM_INVALID_HANDLE;

	SIM_ENTER();
	e = object_get(OBJECT_EVENT, event, __func__);
	pthread_mutex_lock(&lock);
	if (e)
		r = !e->stream || e->stream->done >= e->after ? 0 : SIM_NOT_READY;
	pthread_mutex_unlock(&lock);
	return r;
}

struct wait {
	struct stream *stream;
	unsigned long after;
};

static void run_wait(void *data)
{
	struct wait *w = data;

	pthread_mutex_lock(&lock);
	wait_for(w->stream, w->after);
	pthread_mutex_unlock(&lock);
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
	struct event *e;
	struct wait w;

	SIM_ENTER();
	e = object_get(OBJECT_EVENT, event, __func__);
	if (!e || !e->stream)
		return e ? 0 : SIM_INVALID_HANDLE;
	w = (struct wait){e->stream, e->after};
	return stream_queue(stream, run_wait, stream_data(&w, sizeof(w)), __func__);
}

int cuStreamGetCtx(void *stream, void **context)
{
	SIM_ENTER();
	*context = current_context();
	return sim_have_context();
}

/* Nothing is captured here: graphs are made by hand. */
int cuStreamIsCapturing(void *stream, int *status)
{
	SIM_ENTER();
	*status = 0;
	return sim_have_context();
}
