/*
 * exchange_room.h - memory for arrays that are exchanged between two ABIs: of the stack as long as they are short.
 */
#ifndef SHARED_MPI_EXCHANGE_ROOM_H
#define SHARED_MPI_EXCHANGE_ROOM_H

#include <stdint.h>
#include <stdlib.h>

#define ROOMS 4 /* that a call needs, at most */

struct exchange_room {
	uint32_t used, mores;
	uint32_t kept; /* by a request: none is of the stack */
	uint32_t failed;
	void *more[ROOMS];
	_Alignas(16) char few[768];
};

/* NULL: there is no memory, as exchange_room.failed says. */
static inline void *room_take(struct exchange_room *r, size_t size)
{
	void *at = r->few + r->used;

	size = (size + 15) & ~15ul;
	if (!r->kept && size <= sizeof(r->few) - r->used) {
		r->used += size;
		return at;
	}
	at = malloc(size + 1);
	if (at)
		r->more[r->mores++] = at;
	else
		r->failed = 1;
	return at;
}

static inline void room_give_back(struct exchange_room *r)
{
	while (r->mores)
		free(r->more[--r->mores]);
}

#define LENGTH(given, n) ((given) && (n) > 0 ? (size_t)(n) : 0)

#define WITH_ROOM                 struct exchange_room room = {.used = 0, .mores = 0, .kept = 0, .failed = 0};
#define ROOM(given, length, type) ((given) ? room_take(&room, (length) * sizeof(type)) : NULL)
#define DONE                      room_give_back(&room);
#define NO_ROOM_FAILS                                                                          \
	if (room.failed) {                                                                     \
		room_give_back(&room);                                                         \
		return NO_MEMORY;                                                              \
	}

#endif
