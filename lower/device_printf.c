/*
 * What device code has printed comes out when the device is waited for. While the agent waits, the
 * threads of the upper half are stopped, perhaps with text in their buffers that goes
 * first: it is saved in the records, and printed at the program's next call that waits for the
 * device (stubs/crossing/device_output.c), be it after a restart.
 */
#include <string.h>

#include "lower/records_alloc.h"
#include "lower/runtime.h"
#include "shared/records.h"

#define LEAST 4096

static struct records_text *text_with(uint64_t room)
{
	struct records_text *t =
		__atomic_exchange_n(&RECORDS->printed_spare, NULL, __ATOMIC_ACQ_REL);

	if (t && t->room >= room) {
		t->size = 0;
		return t;
	}
	t = records_alloc(sizeof(*t) + room);
	if (t)
		t->room = room;
	return t;
}

/* Room for @size bytes more. */
static struct records_text *grow_text(struct records_text *t, uint64_t size)
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

/* The program's calls look whether there is something to be printed. */
static void announce_output(void)
{
	__atomic_store_n(
		RECORDS->print_cross, (void (*)(void))RECORDS->info.print, __ATOMIC_SEQ_CST);
}

int printed_keep(const char *text, size_t size)
{
	struct records_text *had, *t;

	if (!RECORDS->print_cross)
		return -1;
	/* Threads of the upper half may run, and print it: it is not there
	 * meanwhile. */
	had = __atomic_exchange_n(&RECORDS->printed, NULL, __ATOMIC_ACQ_REL);
	t = grow_text(had, size);
	if (t) {
		memcpy(t->text + t->size, text, size);
		t->size += size;
	}
	__atomic_store_n(&RECORDS->printed, t ? t : had, __ATOMIC_SEQ_CST);
	announce_output();
	return t ? 0 : -1;
}

void printed_may_come(int may)
{
	__atomic_store_n(&RECORDS->device_awaited, may, __ATOMIC_SEQ_CST);
	if (may && RECORDS->print_cross)
		announce_output();
}
