/* records_map.h - memory for the records arena (records.h): for code of either half that
 * adds to it. */
#ifndef SHARED_RECORDS_MAP_H
#define SHARED_RECORDS_MAP_H

#include <sys/mman.h>

#include "shared/raw.h"
#include "shared/records.h"

/* The chunk at @at is there already. */
static inline int records_chunk_is_mapped(uint64_t at)
{
	return !raw_failed(raw(SYS_madvise, at, 4096, MADV_NORMAL));
}

/* Children of fork(2) do not get what is in the chunk at @at. 0 or -1. */
static inline int records_wipe_in_children(uint64_t at)
{
	uint64_t wiped = at < RECORDS_LIVE ? RECORDS_LIVE : at;

	return raw_failed(raw(SYS_madvise, wiped, at + RECORDS_CHUNK - wiped, MADV_WIPEONFORK))
		       ? -1
		       : 0;
}

/* More of the arena, from @offset in its window on. 0 or -1. */
static inline int records_map_chunk(uint64_t offset)
{
	uint64_t at = RECORDS_WINDOW + offset;
	long r = raw(SYS_mmap, at, RECORDS_CHUNK, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (r != (long)at) {
		if (!raw_failed(r))
			raw(SYS_munmap, r, RECORDS_CHUNK); /* a kernel without NOREPLACE */
		return -1;
	}
	return records_wipe_in_children(at);
}

/* Map it up to @end. Chunks that an ancestor has mapped are there already, wiped. Under
 * RECORDS->lock. 0 or -1. */
static inline int records_map_to(uint64_t end)
{
	while (RECORDS->mapped < end) {
		if (!records_chunk_is_mapped(RECORDS_WINDOW + RECORDS->mapped) &&
			records_map_chunk(RECORDS->mapped) < 0)
			return -1;
		__atomic_store_n(
			&RECORDS->mapped, RECORDS->mapped + RECORDS_CHUNK, __ATOMIC_RELEASE);
	}
	return 0;
}

#endif
