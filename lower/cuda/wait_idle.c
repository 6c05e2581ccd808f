/*
 * Until the devices have come to rest. That may take long, or for ever, as a kernel may wait
 * for what the program does, which is stopped: so streams are asked until they are idle, and
 * contexts, with any work that no stream of the program's shows, are waited for on a
 * thread of its own, which still waits while the agent answers and the program runs again.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "lower/cuda/cuda.h"

#define NOT_READY 600 /* CUDA_ERROR_NOT_READY */
#define ROUND     64

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	void *contexts[ROUND];
	unsigned count, at; /* count is 0: there is nothing to be waited for */
	int result;         /* the first error, and of what */
	const char *function;
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int synchronise_context(void *context, const char **function)
{
	void *popped;
	int r = CUDA(cuCtxPushCurrent_v2, (void *))(context);

	*function = "cuCtxPushCurrent";
	if (r)
		return r;
	*function = "cuCtxSynchronize";
	r = CUDA(cuCtxSynchronize, (void))();
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* what was pushed is there */
	return r;
}

/* What is there to be waited for now; returns with the lock. */
static void *next_context(void)
{
	pthread_mutex_lock(&waiting.lock);
	if (waiting.at == waiting.count) {
		waiting.at = waiting.count = 0;
		printed_may_come(0);
		pthread_cond_broadcast(&waiting.changed);
	}
	while (!waiting.count)
		pthread_cond_wait(&waiting.changed, &waiting.lock);
	return waiting.contexts[waiting.at];
}

static void *wait_for_contexts(void *argument)
{
	is_agent = 1; /* for what comes out of device code meanwhile */
	for (;;) {
		void *context = next_context();
		const char *function;
		int r;

		pthread_mutex_unlock(&waiting.lock);
		r = synchronise_context(context, &function);
		pthread_mutex_lock(&waiting.lock);
		if (r && !waiting.result) {
			waiting.result = r;
			waiting.function = function;
		}
		waiting.at++;
		pthread_mutex_unlock(&waiting.lock);
	}
	return NULL;
}

int cuda_rest_start(void)
{
	pthread_condattr_t attr;
	pthread_t thread;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&waiting.changed, &attr);
	pthread_condattr_destroy(&attr);
	return -pthread_create(&thread, NULL, wait_for_contexts, NULL);
}

/* The context that is still waited for; NULL: none. */
static void *await_contexts(const struct timespec *end)
{
	void *context = NULL;
	int r = 0;

	pthread_mutex_lock(&waiting.lock);
	while (waiting.count && r != ETIMEDOUT && r != EINVAL)
		r = pthread_cond_timedwait(&waiting.changed, &waiting.lock, end);
	if (waiting.count)
		context = waiting.contexts[waiting.at];
	pthread_mutex_unlock(&waiting.lock);
	return context;
}

static struct timespec time_after(uint64_t ns)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += ns / 1000000000;
	end.tv_nsec += ns % 1000000000;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	return end;
}

static const struct object *find_context(const struct cuda_state *s, const void *context)
{
	const struct object *o = s->objects;

	while (o && (o->kind != CUDA_CONTEXT || o->real != context))
		o = o->next;
	return o;
}

static int fail_for_work(const struct cuda_state *s, void *context, void *stream)
{
	const struct object *o = find_context(s, context);
	char name[64] = "a default stream";

	if (stream)
		snprintf(name, sizeof(name), "stream %p", stream);
	return agent_fail_for(LOWER_RESTLESS,
		"%s on GPU %d has work that does not finish: it takes long, or waits for "
		"something that the program would do",
		name, o ? cuda_device_of(o) : 0);
}

/* ---- by asking ---- */

/*
 * While a stream is busy it is asked, and the context is not waited for: a thread that waits lets out
 * what kernels have printed, which would belong to a thread of the program that waits at the same time.
 */
#define PENDING 64

static struct pending {
	void *event, *context; /* ours, behind the work of a stream that was busy */
} pending[PENDING];
static unsigned pending_count;

typedef int found_function(void *stream, void *arg);

static int query_stream(void *stream, found_function *found, void *arg)
{
	int r = CUDA(cuStreamQuery, (void *))(stream);

	if (r == NOT_READY)
		return found(stream, arg);
	return r ? cuda_failed("cuStreamQuery", r) : 0;
}

/* With @context current: call @found(stream) for each that has work, until it returns not 0; its result
 * then. The stream NULL is the default one: not asked during a capture, which that would end. */
static int for_each_busy(
	const struct cuda_state *s, void *context, found_function *found, void *arg)
{
	int captures = 0;

	for (const struct object *o = s->objects; o; o = o->next) {
		int capturing = 0, r;

		if (o->kind != CUDA_STREAM || o->context != context)
			continue;
		r = CUDA(cuStreamIsCapturing, (void *, int *))(o->real, &capturing);
		if (r)
			return cuda_failed("cuStreamIsCapturing", r);
		captures |= capturing;
		r = capturing ? 0 : query_stream(o->real, found, arg);
		if (r)
			return r;
	}
	return captures ? 0 : query_stream(NULL, found, arg);
}

static int find_busy(
	const struct cuda_state *s, void *context, found_function *found, void *arg)
{
	void *popped;
	int r = CUDA(cuCtxPushCurrent_v2, (void *))(context);

	if (r)
		return cuda_failed("cuCtxPushCurrent", r);
	r = for_each_busy(s, context, found, arg);
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* what was pushed is there */
	return r;
}

static int note_stream(void *stream, void *noted)
{
	*(void **)noted = stream;
	return 1;
}

/* Not behind the default stream's: that would hold up all others. */
static int add_event(void *stream, void *context)
{
	void *event;

	if (!stream || pending_count == PENDING ||
		CUDA(cuEventCreate, (void **, unsigned))(&event, 2 /* no timing */))
		return 0;
	if (CUDA(cuEventRecord, (void *, void *))(event, stream))
		CUDA(cuEventDestroy_v2, (void *))(event);
	else
		pending[pending_count++] = (struct pending){event, context};
	return 0;
}

/* Events of a context that the program has destroyed meanwhile went with it. */
static void drop_events(const struct cuda_state *s)
{
	while (pending_count) {
		const struct pending *p = &pending[--pending_count];

		if (find_context(s, p->context))
			CUDA(cuEventDestroy_v2, (void *))(p->event);
	}
}

static int is_past(const struct timespec *end)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > end->tv_sec ||
	       (now.tv_sec == end->tv_sec && now.tv_nsec >= end->tv_nsec);
}

static void pause_us(unsigned us)
{
	nanosleep(&(struct timespec){.tv_nsec = us * 1000L}, NULL);
}

static int await_streams(const struct cuda_state *s, void *context, const struct timespec *end)
{
	void *stream;
	int r;

	while ((r = find_busy(s, context, note_stream, &stream)) > 0) {
		if (is_past(end))
			return find_busy(s, context, add_event, context)
				       ? -1
				       : fail_for_work(s, context, stream);
		pause_us(50);
	}
	return r;
}

/* Threads of the upper half run: of what is theirs nothing is looked at. */
static int await_events(const struct timespec *end)
{
	for (unsigned i = 0; i < pending_count; i++)
		while (CUDA(cuEventQuery, (void *))(pending[i].event) == NOT_READY) {
			if (is_past(end))
				return -1;
			pause_us(100);
		}
	return 0;
}

static const struct object *add_contexts(const struct object *o)
{
	unsigned count = 0;

	pthread_mutex_lock(&waiting.lock);
	for (; o && count < ROUND; o = o->next)
		if (o->kind == CUDA_CONTEXT)
			waiting.contexts[count++] = o->real;
	waiting.at = 0;
	waiting.result = 0;
	waiting.count = count;
	printed_may_come(count > 0);
	pthread_cond_broadcast(&waiting.changed);
	pthread_mutex_unlock(&waiting.lock);
	return o;
}

/* The default stream has no event behind its work. */
#define DEFAULT_PAUSE_US 5000

int cuda_rest(const struct cuda_state *s, uint64_t patience_ns)
{
	struct timespec end = time_after(patience_ns);
	const struct object *o = s->objects;
	void *context = await_contexts(&end); /* what the last one has left */

	drop_events(s);
	for (; o && !context; o = o->next)
		if (o->kind == CUDA_CONTEXT && await_streams(s, o->real, &end))
			return -1;
	for (o = s->objects; !context && o;) {
		o = add_contexts(o);
		context = await_contexts(&end);
		if (!context && waiting.result)
			return cuda_failed(waiting.function, waiting.result);
	}
	return context ? fail_for_work(s, context, NULL) : 0;
}

int cuda_await_rest(uint64_t patience_ns)
{
	struct timespec end = time_after(patience_ns);

	if (!pending_count)
		pause_us(DEFAULT_PAUSE_US);
	return await_events(&end) || await_contexts(&end)
		       ? agent_fail_for(LOWER_RESTLESS, "the GPU is at work")
		       : 0;
}
