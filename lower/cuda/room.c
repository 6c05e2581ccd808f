#include "lower/cuda/room.h"

#include <string.h>

#include "lower/records_map.h"

void *room_alloc(uint64_t size)
{
	uint64_t at = RECORDS->used;

	size = (size + 15) & ~15ul;
	if (size > RECORDS_WINDOW_SIZE - at || records_map_to(at + size) < 0)
		return NULL;
	RECORDS->used = at + size;
	return (void *)(RECORDS_WINDOW + at);
}

int room_for(void **array, uint64_t *room, uint64_t count, uint64_t size)
{
	uint64_t more = *room ? *room : 16;
	void *larger;

	if (count <= *room)
		return 0;
	while (more < count)
		more *= 2;
	larger = room_alloc(more * size);
	if (!larger)
		return -1;
	if (*room)
		memcpy(larger, *array, *room * size);
	*array = larger;
	*room = more;
	return 0;
}
