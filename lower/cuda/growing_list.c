/*
 * growing_list.c - twice as much room each time.
 */
#include "lower/cuda/growing_list.h"

#include <stdlib.h>
#include <string.h>

#include "lower/runtime.h"

#define FIRST_ROOM 64

/* A pointer to the caller's type cannot be read or written as a void *. */
static void *get_pointer(const void *at)
{
	void *pointer;

	memcpy(&pointer, at, sizeof(pointer));
	return pointer;
}

static void set_pointer(void *at, void *pointer)
{
	memcpy(at, &pointer, sizeof(pointer));
}

int list_reserve(void *list, size_t count, size_t *room, size_t size, const char *purpose)
{
	size_t more = *room ? 2 * *room : FIRST_ROOM;
	void *larger;

	if (count < *room)
		return 0;
	larger = realloc(get_pointer(list), more * size);
	if (!larger)
		return agent_fail("no memory %s", purpose);
	set_pointer(list, larger);
	*room = more;
	return 0;
}
