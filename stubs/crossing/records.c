/* The records arena: mapped as it is needed, given out piece by piece (shared/records.h). */
#include "shared/records_map.h"
#include "stubs/crossing/internal.h"

/* A restart may have left something there (struct records_launcher). */
static int map_first_chunk(void)
{
	return records_chunk_is_mapped(RECORDS_WINDOW)
		       ? records_wipe_in_children(RECORDS_WINDOW)
		       : records_map_chunk(0);
}

HIDDEN int records_open(void)
{
	static int mapped; /* here or in an ancestor: then it is there, but wiped */

	if (!mapped && map_first_chunk() < 0) {
		raw_complain("no lower half: no memory for records of it");
		return -1;
	}
	mapped = 1;
	RECORDS_SAVED->magic = RECORDS_MAGIC;
	RECORDS_SAVED->version = RECORDS_VERSION;
	if (RECORDS->magic)
		return 0;
	RECORDS->mapped = RECORDS_CHUNK;
	RECORDS->used = RECORDS_HEAP - RECORDS_WINDOW;
	RECORDS->version = RECORDS_VERSION;
	__atomic_store_n(&RECORDS->magic, RECORDS_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

static int grow_records(uint64_t end)
{
	uint64_t mask = busy_begin();
	int r;

	raw_lock(&RECORDS->lock);
	r = records_map_to(end);
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
	if (end > __atomic_load_n(&RECORDS->mapped, __ATOMIC_ACQUIRE) && grow_records(end) < 0)
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
