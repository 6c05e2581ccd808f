/*
 * exchange_memory.h - memory for arrays that are exchanged between two ABIs: of the stack as long as they are short.
 */
#ifndef SHARED_MPI_EXCHANGE_MEMORY_H
#define SHARED_MPI_EXCHANGE_MEMORY_H

#include <stdint.h>
#include <stdlib.h>

#define PIECES 4 /* that a call needs, at most */

struct exchange_memory {
	uint32_t used, mores;
	uint32_t kept; /* by a request: none is of the stack */
	uint32_t failed;
	void *more[PIECES];
	_Alignas(16) char few[768];
};

/* NULL: there is no memory, as exchange_memory.failed says. */
static inline void *exchange_alloc(struct exchange_memory *r, size_t size)
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

static inline void exchange_free(struct exchange_memory *r)
{
	while (r->mores)
		free(r->more[--r->mores]);
}

#define LENGTH(given, n) ((given) && (n) > 0 ? (size_t)(n) : 0)

#define WITH_MEMORY                                                                            \
	struct exchange_memory memory = {.used = 0, .mores = 0, .kept = 0, .failed = 0};
#define ALLOC(given, length, type)                                                             \
	((given) ? exchange_alloc(&memory, (length) * sizeof(type)) : NULL)
#define DONE exchange_free(&memory);
#define NO_MEMORY_FAILS                                                                        \
	if (memory.failed) {                                                                   \
		exchange_free(&memory);                                                        \
		return NO_MEMORY;                                                              \
	}

#endif
