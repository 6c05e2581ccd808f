/*
 * Until the devices have come to rest. That may take long, or for ever, as a kernel may wait
 * for what the program does, which is stopped: so it is waited for on a thread of its own,
 * which still waits while the agent answers and the program runs again.
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

static struct timespec after(uint64_t ns)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += ns / 1000000000;
	end.tv_nsec += ns % 1000000000;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	return end;
}

static int is_busy(const struct object *stream)
{
	int capturing = 0;

	return !CUDA(cuStreamIsCapturing, (void *, int *))(stream->real, &capturing) &&
	       !capturing && CUDA(cuStreamQuery, (void *))(stream->real) == NOT_READY;
}

/* The stream of @context that has work; NULL: none that the program has made. */
static const struct object *find_busy(const struct cuda_state *s, void *context)
{
	const struct object *o = s->objects;
	void *popped;

	if (CUDA(cuCtxPushCurrent_v2, (void *))(context))
		return NULL;
	while (o && (o->kind != CUDA_STREAM || o->context != context || !is_busy(o)))
		o = o->next;
	CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* what was pushed is there */
	return o;
}

static int fail_for_work(const struct cuda_state *s, void *context)
{
	const struct object *stream = find_busy(s, context), *o = s->objects;
	char name[64] = "a default stream";

	while (o && (o->kind != CUDA_CONTEXT || o->real != context))
		o = o->next;
	if (stream)
		snprintf(name, sizeof(name), "stream %p", (const void *)stream);
	return agent_fail_for(LOWER_RESTLESS,
		"%s on GPU %d has work that does not finish: it takes long, or waits for "
		"something that the program would do",
		name, o ? cuda_device_of(o) : 0);
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
	pthread_cond_broadcast(&waiting.changed);
	pthread_mutex_unlock(&waiting.lock);
	return o;
}

int cuda_rest(const struct cuda_state *s, uint64_t patience_ns)
{
	struct timespec end = after(patience_ns);
	const struct object *o = s->objects;
	void *context = await_contexts(&end); /* what the last one has left */

	while (!context && o) {
		o = add_contexts(o);
		context = await_contexts(&end);
		if (!context && waiting.result)
			return cuda_failed(waiting.function, waiting.result);
	}
	return context ? fail_for_work(s, context) : 0;
}

int cuda_await_rest(uint64_t patience_ns)
{
	struct timespec end = after(patience_ns);

	return await_contexts(&end) ? agent_fail_for(LOWER_RESTLESS, "the GPU is at work") : 0;
}
