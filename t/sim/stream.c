/*
 * stream.c - streams, events and host functions: each stream has a thread and a list of work.
 */
#include "t/sim/stream.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "shared/address_windows.h"
#include "shared/table.h"
#include "t/sim/device.h"
#include "t/sim/graph.h"
#include "t/sim/object.h"
#include "t/sim/shared_event.h"
#include "t/sim/sim.h"

#define ATTRIBUTES     16
#define DISABLE_TIMING 2
#define INTERPROCESS   4

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
	int ending, is_default;
	unsigned flags;
	int priority;
	uint64_t id;
	void *context;
	uint64_t attributes[ATTRIBUTES][8];
	struct stream *next;
};

struct event {
	struct object object;
	unsigned flags;
	struct shared_event *shared; /* of INTERPROCESS */
	int fd;                      /* that memory */
	struct stream *stream;
	unsigned long after;  /* so many works of the stream done */
	struct timespec time; /* when it was recorded */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct stream *streams;

SIM_EXPORT int cuStreamCreate(void **stream, unsigned flags);
SIM_EXPORT int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority);
SIM_EXPORT int cuStreamGetFlags(void *stream, unsigned *flags);
SIM_EXPORT int cuStreamGetPriority(void *stream, int *priority);
SIM_EXPORT int cuStreamGetId(void *stream, uint64_t *id);
SIM_EXPORT int cuStreamGetCtx(void *stream, void **context);
SIM_EXPORT int cuStreamSetAttribute(void *stream, int attribute, const void *value);
SIM_EXPORT int cuStreamGetAttribute(void *stream, int attribute, void *value);
SIM_EXPORT int cuStreamWaitEvent(void *stream, void *event, unsigned flags);
SIM_EXPORT int cuEventQuery(void *event);
SIM_EXPORT int cuEventElapsedTime(float *ms, void *start, void *end);
SIM_EXPORT int cuStreamDestroy_v2(void *stream);
SIM_EXPORT int cuStreamSynchronize(void *stream);
SIM_EXPORT int cuStreamQuery(void *stream);
SIM_EXPORT int cuCtxSynchronize(void);
SIM_EXPORT int cuEventCreate(void **event, unsigned flags);
SIM_EXPORT int cuEventRecord(void *event, void *stream);
SIM_EXPORT int cuEventSynchronize(void *event);
SIM_EXPORT int cuEventDestroy_v2(void *event);
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

/* Begins somewhere else in every process. */
static uint64_t next_id(void)
{
	static uint64_t id;
	unsigned char start;

	if (!id && getrandom(&start, 1, 0) == 1)
		id = start;
	return ++id;
}

/* Under the lock. */
static struct stream *make_stream(void)
{
	struct stream *s = object_new(OBJECT_STREAM, sizeof(*s));

	s->last = &s->first;
	s->id = next_id();
	s->context = current_context();
	s->next = streams;
	streams = s;
	pthread_create(&s->thread, NULL, work_off, s);
	return s;
}

/* Under the lock. */
static struct stream *get(void *handle, const char *function)
{
	struct stream *s;

	if (handle > (void *)2) /* CU_STREAM_LEGACY, CU_STREAM_PER_THREAD */
		return object_get(OBJECT_STREAM, handle, function);
	/* One for each context. */
	for (s = streams; s && (!s->is_default || s->context != current_context());)
		s = s->next;
	if (!s) {
		s = make_stream();
		s->is_default = 1;
	}
	return s;
}

void stream_context_gone(void *context)
{
	pthread_mutex_lock(&lock);
	for (struct stream *s = streams; s; s = s->next)
		if (s->context == context)
			s->context = &streams; /* no context's */
	pthread_mutex_unlock(&lock);
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

static int create(void **stream, unsigned flags, int priority)
{
	struct stream *s;
	int r = sim_have_context();

	if (r)
		return r;
	pthread_mutex_lock(&lock);
	s = make_stream();
	pthread_mutex_unlock(&lock);
	s->flags = flags;
	s->priority = priority;
	*stream = s;
	return 0;
}

int cuStreamCreate(void **stream, unsigned flags)
{
	SIM_ENTER();
	return create(stream, flags, 0);
}

int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
	SIM_ENTER();
	return create(stream, flags, priority);
}

/* What a stream was made with: kept where it is. */
#define STREAM_GETTER(name, type, field)                                                       \
	int name(void *stream, type *value)                                                    \
	{                                                                                      \
		struct stream *s;                                                              \
		SIM_ENTER();                                                                   \
		pthread_mutex_lock(&lock);                                                     \
		s = get(stream, __func__);                                                     \
		if (s)                                                                         \
			*value = s->field;                                                     \
		pthread_mutex_unlock(&lock);                                                   \
		return s ? 0 : SIM_INVALID_HANDLE;                                             \
	}
STREAM_GETTER(cuStreamGetFlags, unsigned, flags)
STREAM_GETTER(cuStreamGetPriority, int, priority)
STREAM_GETTER(cuStreamGetId, uint64_t, id)
STREAM_GETTER(cuStreamGetCtx, void *, context)

static struct stream *stream_get(void *handle, const char *function)
{
	struct stream *s;

	pthread_mutex_lock(&lock);
	s = get(handle, function);
	pthread_mutex_unlock(&lock);
	return s;
}

int cuStreamSetAttribute(void *stream, int attribute, const void *value)
{
	struct stream *s;

	SIM_ENTER();
	s = stream_get(stream, __func__);
	if (!s || attribute < 0 || attribute >= ATTRIBUTES)
		return s ? SIM_INVALID_VALUE : SIM_INVALID_HANDLE;
	memcpy(s->attributes[attribute], value, 64);
	return 0;
}

int cuStreamGetAttribute(void *stream, int attribute, void *value)
{
	struct stream *s;

	SIM_ENTER();
	s = stream_get(stream, __func__);
	if (!s || attribute < 0 || attribute >= ATTRIBUTES)
		return s ? SIM_INVALID_VALUE : SIM_INVALID_HANDLE;
	memcpy(value, s->attributes[attribute], 64);
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
	int r;

	SIM_ENTER();
	if (capture_is_active(stream))
		return 900; /* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED */
	r = stream_wait(stream, __func__);
	module_print();
	return r;
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

/* Says to the supervisor that an order is done, while there is work: "stray_events 1". */
static void stray_event(void)
{
	const struct lower_table *table = (const struct lower_table *)LOWER_SHARED;
	const uint64_t one = 1;

	if (in_lower_window((uintptr_t)stray_event) && *sim_machine("stray_events", ""))
		(void)!write(table->done_fd, &one, sizeof(one));
}

int cuCtxSynchronize(void)
{
	int r;

	SIM_ENTER();
	stray_event();
	r = stream_wait_all();
	module_print();
	return r;
}

int cuEventCreate(void **event, unsigned flags)
{
	struct event *e;

	SIM_ENTER();
	if (sim_have_context())
		return SIM_INVALID_CONTEXT;
	e = object_new(OBJECT_EVENT, sizeof(*e));
	e->flags = flags;
	if (flags & INTERPROCESS)
		e->shared = shared_event_map(e->fd = memfd_create("sim event", MFD_CLOEXEC));
	*event = e;
	return 0;
}

/* ---- of several processes ---- */

/* CUipcEventHandle */
struct event_handle {
	int pid, fd;
	char rest[56];
};

SIM_EXPORT int cuIpcGetEventHandle(struct event_handle *handle, void *event);
SIM_EXPORT int cuIpcOpenEventHandle(void **event, struct event_handle handle);

int cuIpcGetEventHandle(struct event_handle *handle, void *event)
{
	struct event *e;

	SIM_ENTER();
	e = object_get(OBJECT_EVENT, event, __func__);
	if (!e || !e->shared)
		return e ? SIM_INVALID_VALUE : SIM_INVALID_HANDLE;
	*handle = (struct event_handle){.pid = getpid(), .fd = e->fd};
	return 0;
}

int cuIpcOpenEventHandle(void **event, struct event_handle handle)
{
	char path[64];
	struct event *e;
	int fd;

	SIM_ENTER();
	if (sim_have_context())
		return SIM_INVALID_CONTEXT;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle.pid, handle.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return SIM_INVALID_VALUE;
	e = object_new(OBJECT_EVENT, sizeof(*e));
	e->flags = DISABLE_TIMING | INTERPROCESS;
	e->shared = shared_event_map(e->fd = fd);
	*event = e;
	return 0;
}

int cuEventQuery(void *event)
{
	struct event *e;
	int r;

	SIM_ENTER();
	e = object_get(OBJECT_EVENT, event, __func__);
	if (e && e->shared)
		return shared_event_is_done(e->shared) ? 0 : SIM_NOT_READY;
	pthread_mutex_lock(&lock);
	r = !e                                        ? SIM_INVALID_HANDLE
	    : e->stream && e->stream->done < e->after ? SIM_NOT_READY
						      : 0;
	pthread_mutex_unlock(&lock);
	return r;
}

int cuEventElapsedTime(float *ms, void *start, void *end)
{
	struct event *a, *b;

	SIM_ENTER();
	a = object_get(OBJECT_EVENT, start, __func__);
	b = object_get(OBJECT_EVENT, end, __func__);
	if (!a || !b || !a->stream || !b->stream || (a->flags | b->flags) & DISABLE_TIMING)
		return SIM_INVALID_HANDLE;
	*ms = (b->time.tv_sec - a->time.tv_sec) * 1e3 +
	      (b->time.tv_nsec - a->time.tv_nsec) / 1e6;
	return 0;
}

int cuEventRecord(void *event, void *stream)
{
	struct event *e;
	struct stream *s;
	int r;

	SIM_ENTER();
	e = object_get(OBJECT_EVENT, event, __func__);
	if (e && capture_record(event, stream, &r)) {
		e->stream = NULL;
		return r;
	}
	capture_forget_event(event);
	if (e && e->shared)
		return shared_event_record(e->shared, stream);
	pthread_mutex_lock(&lock);
	s = get(stream, __func__);
	if (e && s) {
		e->stream = s;
		e->after = s->queued;
		clock_gettime(CLOCK_MONOTONIC, &e->time);
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
	if (e->shared)
		shared_event_await(e->shared);
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
	if (e && e->shared)
		close(e->fd);
	if (e)
		capture_forget_event(e);
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
	const union graph_params node = {.host = {(void *)function, data}};
	int r;

	SIM_ENTER();
	if (capture_work(stream, GRAPH_HOST, &node, &r))
		return r;
	return stream_queue(stream, run_host_call, stream_data(&h, sizeof(h)), __func__);
}

int cuStreamAddCallback(
	void *stream, void (*function)(void *, int, void *), void *data, unsigned flags)
{
	struct host_call h = {.stream = stream, .callback = function, .data = data};

	SIM_ENTER();
	return stream_queue(stream, run_host_call, stream_data(&h, sizeof(h)), __func__);
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
	int r;

	SIM_ENTER();
	e = object_get(OBJECT_EVENT, event, __func__);
	if (e && capture_wait(event, stream, &r))
		return r;
	if (e && e->shared)
		return shared_event_wait(e->shared, stream);
	if (!e || !e->stream)
		return e ? 0 : SIM_INVALID_HANDLE;
	w = (struct wait){e->stream, e->after};
	return stream_queue(stream, run_wait, stream_data(&w, sizeof(w)), __func__);
}
