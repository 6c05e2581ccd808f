/*
 * What processes of one program share of the driver's (shared/share.h): what this one has is told
 * and handed to others; what it has of others is looked after at a checkpoint, and had again at a
 * restart, when its owner has made it again.
 */
#include "lower/cuda/shared_memory.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lower/cuda/context_replay.h"
#include "lower/cuda/cuda.h"
#include "shared/cuda/memory_driver.h"
#include "shared/raw.h"

#define INVALID_VALUE 1
#define NOT_FOUND     500

#define EVENT_SHARED (2 | 4) /* CU_EVENT_DISABLE_TIMING, CU_EVENT_INTERPROCESS */

/* ---- what this process has, for others ---- */

/* As the upper half's threads do (stubs/cuda/memory.c). */
static struct memory_state *lock_memory(void)
{
	struct memory_state *s = memory_state();
	uint64_t self = raw_read_fs(), nobody = 0;

	while (s && !__atomic_compare_exchange_n(
			    &s->lock, &nobody, self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		raw(SYS_sched_yield);
		nobody = 0;
	}
	return s;
}

static void unlock_memory(struct memory_state *s)
{
	__atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
}

static int export_piece(uint64_t real, int *fd)
{
	return CUDA(cuMemExportToShareableHandle, (void *, uint64_t, int, uint64_t))(
		fd, real, HANDLE_TYPE_FILE, 0);
}

static void tell_device(struct share_reply *reply, uint32_t device)
{
	if (device < CUDA_DEVICES)
		memcpy(reply->device, CUDA_STATE->devices[device].uuid, sizeof(reply->device));
}

/* An allocation lies in one extent of the allocator's, or in several in a row. */
static int share_allocation(struct memory_state *s, const struct share_request *request,
	struct share_reply *reply, int *fd)
{
	uint64_t address = request->handle.object, at, end, piece;
	const struct devmem_allocation *a = devmem_find(&s->devmem, address);
	const struct devmem_device *d;
	uint64_t real = 0;

	if (!a || a->address != address || a->id != request->handle.id ||
		a->device >= DEVMEM_DEVICES)
		return NOT_FOUND;
	d = &s->devmem.devices[a->device];
	at = d->granules[(address - devmem_device_base(a->device)) / DEVMEM_GRANULE].extent;
	reply->size = a->size;
	reply->offset = address - devmem_address(d, at);
	tell_device(reply, a->device);
	for (end = address + a->size; devmem_address(d, at) < end;
		at += piece / DEVMEM_GRANULE) {
		piece = d->granules[at].length * DEVMEM_GRANULE;
		reply->whole += piece;
		if (reply->pieces++ != request->index)
			continue;
		reply->piece = piece;
		real = d->granules[at].handle;
	}
	if (request->look || request->index >= reply->pieces)
		return request->look ? 0 : INVALID_VALUE;
	return export_piece(real, fd);
}

static int share_physical(struct memory_state *s, const struct share_request *request,
	struct share_reply *reply, int *fd)
{
	const struct memory_physical *p = s->physicals;

	while (p && ((uint64_t)p != request->handle.object || p->id != request->handle.id))
		p = p->next;
	if (!p || p->from.magic == SHARE_MAGIC)
		return NOT_FOUND;
	reply->pieces = 1;
	reply->piece = reply->whole = reply->size = p->size;
	reply->created = p->flags;
	memcpy(reply->properties, &p->properties, sizeof(p->properties));
	if (p->properties.location_type == LOCATION_DEVICE)
		tell_device(reply, p->properties.location);
	return request->look ? 0 : export_piece(p->real, fd);
}

static int share_pool(const struct memory_state *s, const struct share_request *request,
	struct share_reply *reply)
{
	const struct memory_pool *p = s->pools;

	while (p && ((uint64_t)p != request->handle.object || p->id != request->handle.id))
		p = p->next;
	if (!p)
		return NOT_FOUND;
	tell_device(reply, p->device);
	return 0;
}

static int share_memory(const struct share_request *request, struct share_reply *reply, int *fd)
{
	struct memory_state *s = lock_memory();
	int r = NOT_FOUND;

	if (!s)
		return r;
	switch (request->handle.kind) {
	case SHARE_MEMORY:
		r = share_allocation(s, request, reply, fd);
		break;
	case SHARE_PHYSICAL:
		r = share_physical(s, request, reply, fd);
		break;
	case SHARE_POOL:
		r = share_pool(s, request, reply);
		break;
	}
	unlock_memory(s);
	return r;
}

static int event_handle(const struct object *o, uint8_t handle[64])
{
	void *popped;
	int r = o->context ? CUDA(cuCtxPushCurrent_v2, (void *))(o->context) : 0;

	if (r)
		return r;
	r = CUDA(cuIpcGetEventHandle, (void *, void *))(handle, o->real);
	if (o->context)
		CUDA(cuCtxPopCurrent_v2, (void **))(&popped); /* what was pushed is there */
	return r;
}

/* The lock is held over the driver's calls, so that nobody destroys it meanwhile. */
static int share_event(const struct share_request *request, struct share_reply *reply)
{
	struct cuda_state *s = CUDA_STATE;
	const struct object *o;
	int r = NOT_FOUND;

	raw_lock(&s->lock);
	for (o = s->objects; o && (uint64_t)o != request->handle.object;)
		o = o->next;
	if (o && o->kind == CUDA_EVENT && o->sequence == request->handle.id)
		r = request->look ? 0 : event_handle(o, reply->event);
	raw_unlock(&s->lock);
	return r;
}

int cuda_share(const struct share_request *request, struct share_reply *reply, int *fd)
{
	const struct cuda_state *s = cuda_records();

	if (!s || !s->initialised || request->handle.magic != SHARE_MAGIC)
		return NOT_FOUND;
	return request->handle.kind == SHARE_EVENT ? share_event(request, reply)
						   : share_memory(request, reply, fd);
}

/* ---- before a checkpoint ---- */

const struct share_handle *cuda_event_origin(const struct object *o)
{
	return o->kind == CUDA_EVENT && o->made && o->made->index == CUDA_NO_FUNCTION
		       ? (const struct share_handle *)o->made->arguments
		       : NULL;
}

/* Events whose owner has destroyed them can be had without it (below). */
unsigned cuda_count_imports(const struct cuda_state *s)
{
	const struct memory_state *m = s->memory;
	unsigned count = 0;

	for (const struct memory_import *i = m ? m->imports : NULL; i; i = i->next)
		count++;
	for (const struct memory_physical *p = m ? m->physicals : NULL; p; p = p->next)
		count += p->from.magic == SHARE_MAGIC;
	for (const struct object *o = s->objects; o; o = o->next)
		count += cuda_event_origin(o) != NULL;
	return count;
}

/* The owner's answer for @from: 0 or an error of the driver; -1 by agent_fail(). */
static int look_at_owner(const struct share_handle *from)
{
	struct share_request request = {.handle = *from, .look = 1};
	struct share_reply reply = {0};
	int fd, r = share_fetch(&request, &reply, &fd);

	if (fd >= 0)
		close(fd);
	if (r == -ECONNREFUSED || r == -ENOENT)
		return NOT_FOUND;
	if (r)
		return agent_fail("it has opened GPU memory or an event of another process "
				  "that does not answer: %s",
			strerror(-r));
	if (reply.session != table->session)
		return agent_fail(
			"it has opened GPU memory or an event of a process that is not "
			"part of this checkpoint, which cannot be restored");
	return reply.result;
}

static int agree_on_memory(const struct share_handle *from)
{
	int r = look_at_owner(from);

	return r > 0 ? agent_fail("it has opened GPU memory of another process that has freed "
				  "it, or "
				  "has ended, which cannot be restored")
		     : r;
}

int cuda_agree(void)
{
	const struct cuda_state *s = cuda_records();
	const struct memory_state *m = s ? s->memory : NULL;

	for (const struct memory_import *i = m ? m->imports : NULL; i; i = i->next)
		if (agree_on_memory(&i->from))
			return -1;
	for (const struct memory_physical *p = m ? m->physicals : NULL; p; p = p->next)
		if (p->from.magic == SHARE_MAGIC && agree_on_memory(&p->from))
			return -1;
	for (const struct object *o = s ? s->objects : NULL; o; o = o->next)
		if (cuda_event_origin(o) && look_at_owner(cuda_event_origin(o)) < 0)
			return -1;
	return 0;
}

/* ---- at a restart ---- */

int cuda_share_again(const struct cuda_state *s)
{
	int r;

	if (!s->memory || !s->memory->shares)
		return 0;
	memcpy(table->share_name, s->memory->name, SHARE_NAME);
	r = share_start();
	return r ? agent_fail("cannot share GPU memory with other processes again: %s",
			   strerror(-r))
		 : 0;
}

static int fetch_shared(
	const struct share_handle *from, uint32_t index, struct share_reply *reply, int *fd)
{
	struct share_request request = {.handle = *from, .index = index};
	int r = share_fetch(&request, reply, fd);

	if (!r && !reply->result)
		return 0;
	if (*fd >= 0)
		close(*fd);
	return r ? agent_fail("the process whose GPU memory it has opened does not answer: %s",
			   strerror(-r))
		 : agent_fail("GPU memory that another process shares cannot be opened again: "
			      "error %d",
			   reply->result);
}

/* One piece of what @from is, as a handle of the driver's. */
static int import_piece(const struct share_handle *from, uint32_t index,
	struct share_reply *reply, uint64_t *real)
{
	int fd = -1, r = fetch_shared(from, index, reply, &fd);

	if (r)
		return r;
	r = CUDA(cuMemImportFromShareableHandle, (uint64_t *, void *, int))(
		real, (void *)(intptr_t)fd, HANDLE_TYPE_FILE);
	close(fd);
	return r ? cuda_failed("cuMemImportFromShareableHandle", r) : 0;
}

static int map_piece(uint64_t at, uint64_t size, uint64_t real)
{
	int r = CUDA(cuMemMap, (uint64_t, size_t, size_t, uint64_t, uint64_t))(
		at, size, 0, real, 0);

	CUDA(cuMemRelease, (uint64_t))(real); /* just made: the mapping keeps it */
	return r ? cuda_failed("cuMemMap", r) : 0;
}

static int map_import(const struct memory_import *i)
{
	struct share_reply reply = {0};
	uint64_t at = i->start, real;
	int r;

	for (uint32_t n = 0; at < i->start + i->mapped; n++, at += reply.piece) {
		if (import_piece(&i->from, n, &reply, &real))
			return -1;
		if (!reply.piece || reply.piece > i->start + i->mapped - at)
			return agent_fail("GPU memory that another process shares has another "
					  "size than it had");
		if (map_piece(at, reply.piece, real))
			return -1;
	}
	r = CUDA(cuMemSetAccess, (uint64_t, size_t, const struct memory_access *, size_t))(
		i->start, i->mapped, i->access, i->access_count);
	return r ? cuda_failed("cuMemSetAccess", r) : 0;
}

/* All that an event can have been waited for is done, so an event that its owner has destroyed is as
 * good as a new one. */
static int open_event(struct object *o)
{
	struct share_request request = {.handle = *cuda_event_origin(o)};
	struct share_reply reply = {0};
	struct {
		uint8_t bytes[64];
	} handle;
	int fd, r = share_fetch(&request, &reply, &fd);

	if (context_set(o->context))
		return -1;
	if (r || reply.result) {
		r = CUDA(cuEventCreate, (void **, unsigned))(&o->real, EVENT_SHARED);
		return r ? cuda_failed("cuEventCreate", r) : 0;
	}
	memcpy(handle.bytes, reply.event, sizeof(handle));
	r = CUDA(cuIpcOpenEventHandle, (void **, __typeof__(handle)))(&o->real, handle);
	return r ? cuda_failed("cuIpcOpenEventHandle", r) : 0;
}

static int open_events(struct cuda_state *s)
{
	int r = 0;

	for (struct object *o = s->objects; o && !r; o = o->next)
		if (cuda_event_origin(o))
			r = open_event(o);
	CUDA(cuCtxSetCurrent, (void *))(NULL); /* this thread has none of its own */
	cuda_enlist(s);
	return r;
}

int cuda_import_again(struct cuda_state *s)
{
	struct share_reply reply;

	if (!cuda_count_imports(s))
		return 0;
	for (const struct memory_import *i = s->memory ? s->memory->imports : NULL; i;
		i = i->next)
		if (map_import(i))
			return -1;
	for (struct memory_physical *p = s->memory ? s->memory->physicals : NULL; p;
		p = p->next)
		if (p->from.magic == SHARE_MAGIC && import_piece(&p->from, 0, &reply, &p->real))
			return -1;
	return (s->memory && cuda_replay_imported(s)) || open_events(s) ? -1 : 0;
}
