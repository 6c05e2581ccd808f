/*
 * Memory in the order of streams (cuMemAllocAsync), and pools.
 *
 * What is freed on a stream waits in that stream's list. The stream itself may have it again at
 * once, as all it does comes later than what it did before. Others may when the stream has done
 * everything, which is asked only when there is need. While a stream is being captured into a
 * graph, what it allocates and frees are nodes of the graph (graph_memory_nodes.c).
 */
#include "shared/cuda/graph.h"
#include "shared/raw.h"
#include "stubs/cuda/external_memory.h"
#include "stubs/cuda/memory.h"
#include "stubs/cuda/objects.h"
#include "stubs/cuda/pool.h"
#include "stubs/cuda/sharing.h"

/* ---- what streams have freed ---- */

#define EVENT_DISABLE_TIMING 2
#define CAPTURE_NONE         0

/* STREAM_PER_THREAD stands for another stream in each thread; so what is freed on it is marked
 * by an event, and its order's stream is the thread's FS base. */

static struct memory_order *find_order(
	struct memory_state *s, void *stream, void *context, uint32_t device)
{
	struct memory_order *o = s->orders;

	while (o && (o->event || o->stream != stream || o->context != context ||
			    o->device != device))
		o = o->next;
	return o;
}

static struct memory_order *make_order(
	struct memory_state *s, void *stream, void *context, uint32_t device)
{
	struct memory_order *o = MEMORY_RECORD(s->spare_orders);

	if (!o)
		return NULL;
	o->stream = stream;
	o->context = context;
	o->device = device;
	o->next = s->orders;
	s->orders = o;
	return o;
}

static void put_allocation(
	struct memory_state *s, struct memory_order *o, struct devmem_allocation *a)
{
	struct devmem_allocation **list = a->granules ? &o->large : &o->small[a->class];

	a->next = *list;
	*list = a;
	o->count++;
	s->pending++;
}

static struct devmem_allocation *take_from(
	struct memory_state *s, struct memory_order *o, struct devmem_allocation **list)
{
	struct devmem_allocation *a = *list;

	*list = a->next;
	o->count--;
	s->pending--;
	return a;
}

/* Something of @o that does for @size, not much larger. */
static struct devmem_allocation *take_allocation(
	struct memory_state *s, struct memory_order *o, uint64_t size)
{
	uint32_t granules = devmem_granules(size);
	struct devmem_allocation **p = &o->small[granules ? 0 : devmem_class(size)];

	if (granules)
		for (p = &o->large; *p; p = &(*p)->next)
			if ((*p)->granules >= granules &&
				(*p)->granules - granules <= granules / 8)
				break;
	return *p ? take_from(s, o, p) : NULL;
}

static void give_all(struct memory_state *s, struct memory_order *o)
{
	while (o->large)
		memory_give(s, take_from(s, o, &o->large));
	for (uint32_t i = 0; i < DEVMEM_CLASSES && o->count; i++)
		while (o->small[i])
			memory_give(s, take_from(s, o, &o->small[i]));
}

/* Has the stream come to where the last of it was freed? A capture that the question would
 * break is not worth it. */
static int is_done(const struct memory_order *o)
{
	int status = CAPTURE_NONE, done = 0;
	void *popped;

	if (o->event)
		return !real_cuEventQuery(o->event);
	if (real_cuCtxPushCurrent_v2(o->context))
		return 0;
	if (!real_cuStreamIsCapturing(o->stream, &status) && status == CAPTURE_NONE)
		done = !real_cuStreamQuery(o->stream);
	real_cuCtxPopCurrent_v2(&popped); /* what was pushed is there */
	return done;
}

static void wait_for(const struct memory_order *o)
{
	void *popped;

	/* An error is a context in ruins, and will come up elsewhere. */
	if (o->event) {
		real_cuEventSynchronize(o->event);
	} else if (!real_cuCtxPushCurrent_v2(o->context)) {
		real_cuStreamSynchronize(o->stream);
		real_cuCtxPopCurrent_v2(&popped);
	}
}

/* Empty, it no longer exists. */
static void drop_order(struct memory_state *s, struct memory_order **at)
{
	struct memory_order *o = *at;

	*at = o->next;
	o->next = s->spare_orders;
	s->spare_orders = o;
}

void memory_collect(struct memory_state *s, int wait)
{
	struct memory_order **p = &s->orders, *o;

	if (s->captures)
		return;
	while ((o = *p)) {
		if (wait)
			wait_for(o);
		if (!o->count || is_done(o))
			give_all(s, o);
		if (o->event && !o->count) {
			if (!graph_mark_keeps(o->event))
				real_cuEventDestroy_v2(o->event); /* ours */
			drop_order(s, p);
		} else {
			p = &o->next; /* a stream will free again */
		}
	}
}

/* What was freed in the order of @o's stream is available when the stream has come as far as it
 * is now, whatever becomes of the stream. */
static int mark_order(struct memory_order *o)
{
	void *event, *popped;
	int r = real_cuCtxPushCurrent_v2(o->context);

	if (r)
		return r;
	r = real_cuEventCreate(&event, EVENT_DISABLE_TIMING);
	if (!r) {
		r = real_cuEventRecord(event, o->stream);
		if (r)
			real_cuEventDestroy_v2(event); /* just made */
	}
	real_cuCtxPopCurrent_v2(&popped); /* what was pushed is there */
	if (!r)
		o->event = event;
	return r;
}

void memory_stream_gone(void *stream)
{
	struct memory_state *s = memory_lock(0);
	struct memory_order **p, *o;

	if (!s)
		return;
	for (p = &s->orders; (o = *p);) {
		if (o->event || o->stream != stream) {
			p = &o->next;
		} else if (o->count && !mark_order(o)) {
			o->stream = NULL;
			p = &o->next;
		} else {
			if (o->count)
				wait_for(o);
			give_all(s, o);
			drop_order(s, p);
		}
	}
	memory_managed_detached(s, stream);
	memory_unlock(s);
}

/* Its streams and events are no more, and nothing runs there. */
void memory_orders_gone(struct memory_state *s, void *context)
{
	struct memory_order **p = &s->orders, *o;

	while ((o = *p)) {
		if (o->context != context) {
			p = &o->next;
			continue;
		}
		give_all(s, o);
		drop_order(s, p);
	}
	graph_marks_gone(context);
}

int memory_give_behind(
	struct memory_state *s, struct devmem_allocation *a, struct graph_mark *mark)
{
	struct memory_order *o = mark->order;

	if (!o) {
		o = make_order(s, NULL, mark->context, a->device);
		if (!o)
			return CUDA_ERROR_OUT_OF_MEMORY;
		o->event = mark->event;
		mark->order = o;
	}
	put_allocation(s, o, a);
	return 0;
}

/* ---- accounts ---- */

static void account_allocation(struct devmem_allocation *a)
{
	struct memory_pool *p = a->pool;

	p->held += devmem_room(a);
	p->used += a->size;
	p->allocations++;
	if (p->used > p->used_high)
		p->used_high = p->used;
	if (p->held > p->held_high)
		p->held_high = p->held;
}

void pool_release(struct memory_state *s, struct memory_pool *p)
{
	struct memory_pool **at = &s->pools;

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	p->next = s->spare_pools;
	s->spare_pools = p;
}

void memory_unaccount(struct devmem_allocation *a)
{
	struct memory_pool *p = a->pool;

	p->used -= a->size;
}

void memory_leave_pool(struct memory_state *s, struct devmem_allocation *a)
{
	struct memory_pool *p = a->pool;

	p->held -= devmem_room(a);
	if (!--p->allocations && p->destroyed)
		pool_release(s, p);
}

/* ---- allocating ---- */

static int device_of(void *stream, int *device)
{
	void *context;
	int r;

	if (CUDA_STATE->device_count == 1) {
		*device = 0;
		return 0;
	}
	r = real_cuStreamGetCtx(stream, &context);
	return r ? r : memory_device_of(context, device);
}

/* @stream as a name that belongs to one stream: the per-thread stream's belongs to none. */
static void *name_of(void *stream)
{
	return stream ? stream : STREAM_LEGACY;
}

/* Something that this thread has freed on its own stream. (A thread that no longer exists may have
 * had the same FS base: hence the wait, which is none on the same stream.) */
static struct devmem_allocation *take_own(
	struct memory_state *s, void *context, uint32_t device, size_t size)
{
	void *thread = (void *)raw_read_fs();
	struct devmem_allocation *a;

	for (struct memory_order *o = s->orders; o; o = o->next) {
		if (!o->event || o->stream != thread || o->context != context ||
			o->device != device)
			continue;
		a = take_allocation(s, o, size);
		if (!a)
			continue;
		if (!real_cuStreamWaitEvent(STREAM_PER_THREAD, o->event, 0))
			return a;
		put_allocation(s, o, a);
	}
	return NULL;
}

/* Memory that was freed earlier in the order of @stream. */
static struct devmem_allocation *take_freed(
	struct memory_state *s, void *stream, void *context, uint32_t device, size_t size)
{
	struct memory_order *o;

	if (!s->pending)
		return NULL;
	if (stream == STREAM_PER_THREAD)
		return take_own(s, context, device, size);
	o = find_order(s, stream, context, device);
	return o ? take_allocation(s, o, size) : NULL;
}

/* 0: allocated as ordinary memory; else an error. */
static int allocate_in_pool(struct memory_state *s, struct memory_pool *pool, void *stream,
	void *context, size_t size, uint64_t *address)
{
	struct devmem_allocation *a;
	int r = 0;

	if (pool->largest && pool->held + size > pool->largest)
		return CUDA_ERROR_OUT_OF_MEMORY;
	a = take_freed(s, stream, context, pool->device, size);
	if (a) {
		if (a->pool)
			memory_leave_pool(s, a);
		devmem_revive(&s->devmem, a, size);
	} else {
		if (s->pending)
			memory_collect(s, 0);
		r = memory_new(s, pool->device, size, context, &a);
	}
	if (r)
		return r;
	a->context = context;
	a->pool = pool;
	account_allocation(a);
	*address = a->address;
	return 0;
}

/* Whether @stream is being captured, and what it says of the context. */
static int ask_capturing(void *stream, int *capturing)
{
	int status = CAPTURE_NONE, r = real_cuStreamIsCapturing(stream, &status);

	*capturing = status != CAPTURE_NONE;
	return r == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ? 0 : r;
}

/* @pool: NULL: the one of the stream's device. */
static int pool_alloc(uint64_t *address, size_t size, struct memory_pool *pool, void *stream)
{
	struct memory_state *s;
	void *context = NULL;
	int device, r;

	if (!address)
		return CUDA_ERROR_INVALID_VALUE;
	r = real_cuCtxGetCurrent(&context);
	if (!r && !pool)
		r = device_of(stream, &device);
	if (r)
		return r;
	*address = 0;
	if (!size)
		return 0;
	s = memory_lock(1);
	if (!s)
		return CUDA_ERROR_UNKNOWN;
	if (!pool)
		r = pool_current(s, device, &pool);
	if (!r)
		r = allocate_in_pool(s, pool, name_of(stream), context, size, address);
	memory_unlock(s);
	return r;
}

int body_cuMemAllocAsync(uint64_t *address, size_t size, void *stream)
{
	int capturing, device, r = ask_capturing(stream, &capturing);

	if (!r && capturing)
		r = device_of(stream, &device);
	if (r)
		return r;
	return capturing && size ? graph_capture_allocation(address, size, device, stream)
				 : pool_alloc(address, size, NULL, stream);
}

int body_cuMemAllocFromPoolAsync(uint64_t *address, size_t size, void *pool, void *stream)
{
	int capturing, r = ask_capturing(stream, &capturing);
	struct memory_pool *p = pool_of(pool);

	if (r)
		return r;
	if (!p || p->imported)
		return CUDA_ERROR_INVALID_VALUE;
	if (!capturing || !size)
		return pool_alloc(address, size, p, stream);
	return graph_capture_allocation(address, size, p->device, stream);
}

/* ---- freeing ---- */

/* The thread's own stream cannot be named later on, by another thread: mark where it is. */
static int put_marked(struct memory_state *s, struct devmem_allocation *a, void *context)
{
	struct memory_order *o = make_order(s, STREAM_PER_THREAD, context, a->device);
	int r = o ? mark_order(o) : CUDA_ERROR_OUT_OF_MEMORY;

	if (!r) {
		o->stream = (void *)raw_read_fs();
		put_allocation(s, o, a);
	} else if (o) {
		drop_order(s, &s->orders); /* just put in front */
	}
	return r;
}

static int put_pending(
	struct memory_state *s, struct devmem_allocation *a, void *stream, void *context)
{
	struct memory_order *o;

	if (stream == STREAM_PER_THREAD)
		return put_marked(s, a, context);
	o = find_order(s, stream, context, a->device);
	if (!o)
		o = make_order(s, stream, context, a->device);
	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	put_allocation(s, o, a);
	return 0;
}

/* 1: not ours. */
static int free_ours(uint64_t address, void *stream, void *context, int *r)
{
	struct memory_state *s = memory_lock(0);
	struct devmem_allocation *a = s ? memory_claim(s, address) : NULL;

	*r = 0;
	if (a) {
		*r = put_pending(s, a, name_of(stream), context);
		if (*r)
			a->state = DEVMEM_LIVE;
		else if (a->pool)
			memory_unaccount(a);
	}
	if (s)
		memory_unlock(s);
	return !a;
}

int body_cuMemFreeAsync(uint64_t address, void *stream)
{
	void *context = NULL;
	int capturing, r;

	if (!address)
		return 0;
	if (devmem_part(address) >= DEVMEM_DEVICES) {
		r = import_close(address, 1);
		if (r != CUDA_ERROR_NOT_FOUND)
			return r;
		r = real_cuMemFreeAsync(address, stream);
		if (!r)
			external_buffer_gone(address);
		return r;
	}
	r = ask_capturing(stream, &capturing);
	if (!r)
		r = real_cuCtxGetCurrent(&context);
	if (r)
		return r;
	if (capturing)
		return graph_capture_free(address, stream);
	if (memory_is_of_graph(address))
		return graph_memory_freed_behind(address, stream);
	if (free_ours(address, stream, context, &r))
		return CUDA_ERROR_INVALID_VALUE;
	return r;
}

/* In programs built for it, stream 0 is the thread's own. */
static void *per_thread(void *stream)
{
	return stream ? stream : STREAM_PER_THREAD;
}

int body_cuMemAllocAsync_ptsz(uint64_t *address, size_t size, void *stream)
{
	return body_cuMemAllocAsync(address, size, per_thread(stream));
}

int body_cuMemAllocFromPoolAsync_ptsz(uint64_t *address, size_t size, void *pool, void *stream)
{
	return body_cuMemAllocFromPoolAsync(address, size, pool, per_thread(stream));
}

int body_cuMemFreeAsync_ptsz(uint64_t address, void *stream)
{
	return body_cuMemFreeAsync(address, per_thread(stream));
}
