/*
 * records_alloc.c - taken from the end of what is in use, and never given back.
 */
#include "lower/records_alloc.h"

#include <string.h>

#include "shared/records_map.h"

void *records_alloc(uint64_t size)
{
	uint64_t at;
	int r;

	size = (size + 15) & ~15ul;
	if (size > RECORDS_WINDOW_SIZE / 2)
		return NULL;
	/* What is printed comes here while threads of the upper half run
	 * (lower/device_printf.c). */
	at = __atomic_fetch_add(&RECORDS->used, size, __ATOMIC_RELAXED);
	if (at + size > RECORDS_WINDOW_SIZE)
		return NULL;
	raw_lock(&RECORDS->lock);
	r = records_map_to(at + size);
	raw_unlock(&RECORDS->lock);
	return r < 0 ? NULL : (void *)(RECORDS_WINDOW + at);
}

int records_reserve(void **array, uint64_t *room, uint64_t count, uint64_t size)
{
	uint64_t more = *room ? *room : 16;
	void *larger;

	if (count <= *room)
		return 0;
	while (more < count)
		more *= 2;
	larger = records_alloc(more * size);
	if (!larger)
		return -1;
	if (*room)
		memcpy(larger, *array, *room * size);
	*array = larger;
	*room = more;
	return 0;
}
