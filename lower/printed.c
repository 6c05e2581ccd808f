/*
 * What device code has printed comes out when the device is waited for. When it is the agent
 * that waits, the threads above stand still, perhaps with text in their buffers that goes
 * first: it is kept in the records, and printed at the program's next call (crossing_print()),
 * be it after a restart.
 */
#include <string.h>

#include "lower/cuda/room.h"
#include "lower/records.h"
#include "lower/runtime.h"

#define LEAST 4096

static struct records_text *text_with(uint64_t room)
{
	struct records_text *t = RECORDS->printed_spare;

	RECORDS->printed_spare = NULL;
	if (t && t->room >= room) {
		t->size = 0;
		return t;
	}
	t = room_alloc(sizeof(*t) + room);
	if (t)
		t->room = room;
	return t;
}

/* Room for @size bytes more. */
static struct records_text *grow(struct records_text *t, uint64_t size)
{
	uint64_t used = t ? t->size : 0, room = LEAST;
	struct records_text *larger;

	if (t && t->room - used >= size)
		return t;
	while (room - used < size)
		room *= 2;
	larger = text_with(room);
	if (larger && t) {
		memcpy(larger->text, t->text, used);
		larger->size = used;
	}
	return larger;
}

int printed_keep(const char *text, size_t size)
{
	struct records_text *t;

	if (!RECORDS->print_cross)
		return -1;
	t = grow(RECORDS->printed, size);
	if (!t)
		return -1;
	memcpy(t->text + t->size, text, size);
	t->size += size;
	RECORDS->printed = t;
	*RECORDS->print_cross = (void (*)(void))RECORDS->info.print;
	return 0;
}
