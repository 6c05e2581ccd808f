/* The records arena: mapped as it is needed, given out piece by piece (lower/records.h). */
#include <sys/mman.h>

#include "loader/lower/raw.h"
#include "lower/records.h"
#include "stubs/crossing/internal.h"

#define CHUNK (2ul << 20)

/* More of the arena, from its current end on. */
static int map_chunk(uint64_t offset, uint64_t size)
{
	uint64_t at = RECORDS_WINDOW + offset;
	uint64_t wiped = at < RECORDS_LIVE ? RECORDS_LIVE : at;
	long r = raw(SYS_mmap, at, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (r != (long)at) {
		if (!raw_failed(r))
			raw(SYS_munmap, r, size); /* a kernel that does not know NOREPLACE */
		return -1;
	}
	return raw_failed(raw(SYS_madvise, wiped, at + size - wiped, MADV_WIPEONFORK)) ? -1 : 0;
}

HIDDEN int records_open(void)
{
	static int mapped; /* here or in an ancestor: then it is there, but wiped */

	if (!mapped && map_chunk(0, CHUNK) < 0) {
		raw_complain("no lower half: no memory for records of it");
		return -1;
	}
	mapped = 1;
	RECORDS_KEPT->magic = RECORDS_MAGIC;
	RECORDS_KEPT->version = RECORDS_VERSION;
	if (RECORDS->magic)
		return 0;
	RECORDS->mapped = CHUNK;
	RECORDS->used = RECORDS_HEAP - RECORDS_WINDOW;
	RECORDS->version = RECORDS_VERSION;
	__atomic_store_n(&RECORDS->magic, RECORDS_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

/* Chunks that an ancestor has mapped are there already, wiped. */
static int is_mapped(uint64_t offset)
{
	return !raw_failed(raw(SYS_madvise, RECORDS_WINDOW + offset, 4096, MADV_NORMAL));
}

static int grow(uint64_t end)
{
	uint64_t mask = busy_begin();
	int r = 0;

	raw_lock(&RECORDS->lock);
	while (!r && RECORDS->mapped < end) {
		if (!is_mapped(RECORDS->mapped))
			r = map_chunk(RECORDS->mapped, CHUNK);
		if (!r)
			__atomic_store_n(
				&RECORDS->mapped, RECORDS->mapped + CHUNK, __ATOMIC_RELEASE);
	}
	raw_unlock(&RECORDS->lock);
	busy_end(mask);
	return r;
}

void *records_alloc(uint64_t size)
{
	uint64_t at, end;

	size = (size + 15) & ~15ul;
	if (size > RECORDS_WINDOW_SIZE / 2)
		return NULL;
	at = __atomic_fetch_add(&RECORDS->used, size, __ATOMIC_RELAXED);
	end = at + size;
	if (end > RECORDS_WINDOW_SIZE)
		return NULL;
	if (end > __atomic_load_n(&RECORDS->mapped, __ATOMIC_ACQUIRE) && grow(end) < 0)
		return NULL;
	return (void *)(RECORDS_WINDOW + at);
}

HIDDEN char *records_string(const char *text)
{
	size_t n = text ? raw_length(text) + 1 : 0;
	char *copy = n ? records_alloc(n) : NULL;

	if (copy)
		raw_copy(copy, text, n);
	return copy;
}
