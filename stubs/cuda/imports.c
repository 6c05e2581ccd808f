/*
 * cuIpcOpenMemHandle and cuMemPoolImportPointer: memory of another process, mapped at addresses of
 * ours, to which it comes again after a restart (lower/cuda/shared_memory.c).
 *
 * The owner is asked without the lock of the state, as it may be opening something of this process's.
 */
#include "shared/raw.h"
#include "stubs/cuda/objects.h"
#include "stubs/cuda/pool.h"
#include "stubs/cuda/sharing.h"

struct memory_import *import_find(struct memory_state *s, uint64_t address)
{
	struct memory_import *i = s->imports;

	while (i && address - i->address >= i->size)
		i = i->next;
	return i;
}

/* The driver counts how often a context has opened something. */
static int open_known(
	struct memory_state *s, const struct memory_import *wanted, uint64_t *address)
{
	struct memory_import *i = s->imports;

	while (i &&
		(__builtin_memcmp(&i->from, &wanted->from, sizeof(i->from)) ||
			i->pool != wanted->pool || (!i->pool && i->context != wanted->context)))
		i = i->next;
	if (!i)
		return 0;
	i->references++;
	*address = i->address;
	return 1;
}

/* ---- mapping ---- */

static int map_piece(uint64_t at, uint64_t size, uint64_t real)
{
	int r = real_cuMemMap(at, size, 0, real, 0);

	real_cuMemRelease(real); /* just made: the mapping keeps it */
	return r;
}

/* *@done: how much is mapped, also on failure. */
static int map_pieces(const char *name, const struct memory_import *i, uint64_t *done)
{
	struct share_reply reply;
	uint64_t real;
	int r;

	for (uint32_t n = 0; *done < i->mapped; n++) {
		r = share_import(name, &i->from, n, &reply, &real);
		if (r)
			return r;
		if (!reply.piece || reply.piece > i->mapped - *done) {
			real_cuMemRelease(real);
			return CUDA_ERROR_INVALID_VALUE; /* it is another one by now */
		}
		r = map_piece(i->start + *done, reply.piece, real);
		if (r)
			return r;
		*done += reply.piece;
	}
	return real_cuMemSetAccess(i->start, i->mapped, i->access, i->access_count);
}

static void unmap_import(struct memory_state *s, const struct memory_import *i, uint64_t mapped)
{
	if (mapped)
		real_cuMemUnmap(i->start, mapped);
	memory_unreserve(s, i->start, i->mapped);
}

/* The device that has it, if this process sees that one, and the current context's. */
static void choose_access(struct memory_import *i, uint32_t owner, uint32_t current)
{
	if (owner < DEVMEM_DEVICES)
		i->access[i->access_count++] =
			(struct memory_access){LOCATION_DEVICE, owner, READ_WRITE};
	if (current != owner)
		i->access[i->access_count++] =
			(struct memory_access){LOCATION_DEVICE, current, READ_WRITE};
	i->device = owner < DEVMEM_DEVICES ? owner : current;
}

/* Addresses for it, and a record that is in no list yet. */
static int prepare_import(struct memory_import *wanted, const struct share_reply *reply)
{
	struct memory_state *s = memory_lock(1);
	int device, r = s ? real_cuCtxGetDevice(&device) : CUDA_ERROR_UNKNOWN;

	wanted->mapped = reply->whole;
	wanted->size = reply->size;
	if (!r)
		r = memory_reserve(s, &wanted->start, wanted->mapped);
	if (!r) {
		wanted->address = wanted->start + reply->offset;
		choose_access(wanted, share_device(reply), device);
	}
	if (s)
		memory_unlock(s);
	return r;
}

/* Another thread may have opened the same meanwhile. */
static int keep_import(const struct memory_import *wanted, uint64_t *address)
{
	struct memory_state *s = memory_lock(0);
	struct memory_import *i = NULL;
	int known, r = 0;

	if (!s)
		return CUDA_ERROR_UNKNOWN;
	known = open_known(s, wanted, address);
	if (!known)
		i = MEMORY_RECORD(s->spare_imports);
	if (i) {
		*i = *wanted;
		i->references = 1;
		i->id = ++s->devmem.next_id;
		i->next = s->imports;
		s->imports = i;
		*address = i->address;
	} else {
		unmap_import(s, wanted, wanted->mapped);
		r = known ? 0 : CUDA_ERROR_OUT_OF_MEMORY;
	}
	memory_unlock(s);
	return r;
}

static int open_anew(const char *name, struct memory_import *wanted, uint64_t *address)
{
	struct share_reply reply;
	uint64_t done = 0;
	struct memory_state *s;
	int r = share_ask(name, &wanted->from, &reply);

	if (!r)
		r = prepare_import(wanted, &reply);
	if (r)
		return r;
	r = map_pieces(name, wanted, &done);
	if (!r)
		return keep_import(wanted, address);
	s = memory_lock(0);
	if (s) {
		unmap_import(s, wanted, done);
		memory_unlock(s);
	}
	return r;
}

int import_open(const char *name, const struct share_handle *handle, struct memory_pool *pool,
	uint64_t *address)
{
	struct memory_import wanted = {.from = *handle, .pool = pool};
	struct memory_state *s;
	int known = 0, r = real_cuCtxGetCurrent(&wanted.context);

	if (r || !wanted.context)
		return r ? r : CUDA_ERROR_INVALID_CONTEXT;
	s = memory_lock(1);
	if (!s)
		return CUDA_ERROR_UNKNOWN;
	known = open_known(s, &wanted, address);
	memory_unlock(s);
	return known ? 0 : open_anew(name, &wanted, address);
}

/* ---- the end of it ---- */

static void drop_import(struct memory_state *s, struct memory_import **at)
{
	struct memory_import *i = *at;

	*at = i->next;
	unmap_import(s, i, i->mapped);
	i->next = s->spare_imports;
	s->spare_imports = i;
}

static struct memory_import **find_opened(struct memory_state *s, uint64_t address, int pooled)
{
	struct memory_import **at = &s->imports;

	while (*at && ((*at)->address != address || pooled != ((*at)->pool != NULL)))
		at = &(*at)->next;
	return at;
}

static int is_opened(uint64_t address, int pooled)
{
	struct memory_state *s = memory_lock(0);
	int is = s && *find_opened(s, address, pooled);

	if (s)
		memory_unlock(s);
	return is;
}

/* The last reference is given up when nothing uses the memory any more. */
int import_close(uint64_t address, int pooled)
{
	struct memory_import **at;
	struct memory_state *s;
	int r;

	if (!is_opened(address, pooled))
		return CUDA_ERROR_NOT_FOUND;
	r = real_cuCtxSynchronize();
	s = r ? NULL : memory_lock(0);
	if (!s)
		return r ? r : CUDA_ERROR_UNKNOWN;
	at = find_opened(s, address, pooled);
	if (*at && !--(*at)->references)
		drop_import(s, at);
	memory_unlock(s);
	return 0;
}

void imports_gone(struct memory_state *s, const void *context)
{
	struct memory_import **at = &s->imports;

	while (*at)
		if ((*at)->context == context && !(*at)->pool)
			drop_import(s, at);
		else
			at = &(*at)->next;
}
