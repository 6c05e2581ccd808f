/*
 * Memory and semaphores of other interfaces. Here, both are files in memory: a semaphore is a file with a
 * counter of eight bytes, which a signal sets and a wait waits to reach. The driver has the descriptor
 * for its own from the import on, as with the real one: it is closed here at once.
 */
#include "t/sim/external.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "t/sim/device.h"
#include "t/sim/graph.h"
#include "t/sim/memory.h"
#include "t/sim/object.h"
#include "t/sim/sim.h"
#include "t/sim/stream.h"

#define OPAQUE_FD 1
#define COUNTER   sizeof(uint64_t)

struct external {
	struct object object;
	const void *context;
	int fd; /* of memory */
	uint64_t size;
	uint64_t *counter; /* of a semaphore */
	struct external *next;
};

/* CUDA_EXTERNAL_MEMORY_HANDLE_DESC and, without the size, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC */
struct handle {
	int type, pad, fd, pad2;
	void *more;
	uint64_t size;
};

/* CUDA_EXTERNAL_MEMORY_BUFFER_DESC */
struct part {
	uint64_t offset, size;
	unsigned flags;
};

/* CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, and ..._WAIT_PARAMS */
struct operation {
	uint64_t value;
	char more[136];
};

static struct external *externals;

SIM_EXPORT int cuImportExternalMemory(void **memory, const struct handle *handle);
SIM_EXPORT int cuExternalMemoryGetMappedBuffer(
	uint64_t *address, void *memory, const struct part *part);
SIM_EXPORT int cuDestroyExternalMemory(void *memory);
SIM_EXPORT int cuImportExternalSemaphore(void **semaphore, const struct handle *handle);
SIM_EXPORT int cuSignalExternalSemaphoresAsync(void *const *semaphores,
	const struct operation *operations, unsigned count, void *stream);
SIM_EXPORT int cuWaitExternalSemaphoresAsync(void *const *semaphores,
	const struct operation *operations, unsigned count, void *stream);
SIM_EXPORT int cuDestroyExternalSemaphore(void *semaphore);

/* ---- imports ---- */

/* One thread at a time makes such things in the tests. */
static int import(void **out, enum object_kind kind, int type, int fd, uint64_t size)
{
	struct external *e;
	struct stat st;

	if (sim_have_context())
		return SIM_INVALID_CONTEXT;
	if (type != OPAQUE_FD || fstat(fd, &st) || (uint64_t)st.st_size < size || !size)
		return SIM_INVALID_VALUE;
	e = object_new(kind, sizeof(*e));
	e->context = current_context();
	e->size = size;
	e->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	close(fd);
	e->next = externals;
	externals = e;
	*out = e;
	return 0;
}

int cuImportExternalMemory(void **memory, const struct handle *handle)
{
	SIM_ENTER();
	return import(memory, OBJECT_EXTERNAL_MEMORY, handle->type, handle->fd, handle->size);
}

int cuImportExternalSemaphore(void **semaphore, const struct handle *handle)
{
	struct external *e;
	int r;

	SIM_ENTER();
	r = import(semaphore, OBJECT_EXTERNAL_SEMAPHORE, handle->type, handle->fd, COUNTER);
	if (r)
		return r;
	e = *semaphore;
	e->counter = mmap(NULL, COUNTER, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);
	return 0;
}

static void end(struct external *e)
{
	struct external **at = &externals;

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	if (e->counter)
		munmap(e->counter, COUNTER);
	close(e->fd);
	object_free(e);
}

static int destroy(enum object_kind kind, void *handle, const char *function)
{
	struct external *e = object_get(kind, handle, function);

	if (e)
		end(e);
	return e ? 0 : SIM_INVALID_HANDLE;
}

int cuDestroyExternalMemory(void *memory)
{
	SIM_ENTER();
	return destroy(OBJECT_EXTERNAL_MEMORY, memory, __func__);
}

int cuDestroyExternalSemaphore(void *semaphore)
{
	SIM_ENTER();
	return destroy(OBJECT_EXTERNAL_SEMAPHORE, semaphore, __func__);
}

void external_context_gone(const void *context)
{
	struct external *e = externals;

	while (e) {
		struct external *next = e->next;

		if (e->context == context)
			end(e);
		e = next;
	}
}

/* ---- memory ---- */

void *external_map(void *memory, uint64_t offset, uint64_t size, const char *function)
{
	const struct external *e = object_get(OBJECT_EXTERNAL_MEMORY, memory, function);
	void *p;

	if (!e || !size || offset > e->size || size > e->size - offset)
		return NULL;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, offset);
	return p == MAP_FAILED ? NULL : p;
}

int cuExternalMemoryGetMappedBuffer(uint64_t *address, void *memory, const struct part *part)
{
	void *p;

	SIM_ENTER();
	p = external_map(memory, part->offset, part->size, __func__);
	if (!p || part->flags)
		return SIM_INVALID_VALUE;
	ranges_lock();
	range_add((uint64_t)p, part->size, EXTERNAL);
	ranges_unlock();
	*address = (uint64_t)p;
	return 0;
}

/* ---- semaphores ---- */

struct work {
	uint64_t *counter, value;
};

static void run_signal(void *data)
{
	const struct work *w = data;

	__atomic_store_n(w->counter, w->value, __ATOMIC_RELEASE);
}

/* The program sets the counter without a system call: there is no event to wait for. */
static void run_wait(void *data)
{
	const struct work *w = data;

	while (__atomic_load_n(w->counter, __ATOMIC_ACQUIRE) < w->value)
		nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
}

int external_set_node(int type, struct graph_semaphores *to,
	const struct graph_semaphores *from, const char *function)
{
	for (uint32_t i = 0; i < from->count; i++)
		if (!object_get(OBJECT_EXTERNAL_SEMAPHORE, from->semaphores[i], function))
			return SIM_INVALID_HANDLE;
	to->count = from->count;
	to->semaphores = memcpy(malloc(from->count * sizeof(void *) + 1), from->semaphores,
		from->count * sizeof(void *));
	to->operations = memcpy(malloc(from->count * sizeof(struct operation) + 1),
		from->operations, from->count * sizeof(struct operation));
	return 0;
}

int external_queue(
	int type, const struct graph_semaphores *params, void *stream, const char *function)
{
	const struct operation *operations = params->operations;
	int r = 0;

	for (uint32_t i = 0; i < params->count && !r; i++) {
		const struct external *e =
			object_get(OBJECT_EXTERNAL_SEMAPHORE, params->semaphores[i], function);
		const struct work w = {e ? e->counter : NULL, operations[i].value};

		r = !e ? SIM_INVALID_HANDLE
		       : stream_queue(stream, type == GRAPH_SIGNAL ? run_signal : run_wait,
				 stream_data(&w, sizeof(w)), function);
	}
	return r;
}

static int operate(int type, void *const *semaphores, const struct operation *operations,
	unsigned count, void *stream, const char *function)
{
	const union graph_params node = {
		.semaphores = {(void **)semaphores, (void *)operations, count}};
	int r;

	if (capture_work(stream, type, &node, &r))
		return r;
	return external_queue(type, &node.semaphores, stream, function);
}

int cuSignalExternalSemaphoresAsync(void *const *semaphores, const struct operation *operations,
	unsigned count, void *stream)
{
	SIM_ENTER();
	return operate(GRAPH_SIGNAL, semaphores, operations, count, stream, __func__);
}

int cuWaitExternalSemaphoresAsync(void *const *semaphores, const struct operation *operations,
	unsigned count, void *stream)
{
	SIM_ENTER();
	return operate(GRAPH_WAIT, semaphores, operations, count, stream, __func__);
}
