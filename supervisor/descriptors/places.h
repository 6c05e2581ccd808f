/*
 * descriptors/places.h - at a restart, in each process: its descriptors at their numbers, and
 * nothing else open.
 */
#ifndef SUPERVISOR_DESCRIPTORS_PLACES_H
#define SUPERVISOR_DESCRIPTORS_PLACES_H

#include "supervisor/fd/kinds.h"

struct places {
	struct fd_restore *r;
	int *open; /* as it was in @r: processes that share memory have tables of their own */
	size_t count; /* of numbers: above all that are a place or hold something needed */
	int **holds;  /* by number: where it is noted that something needed is there; NULL */
};

/* For the process that @r has turned to. What is in @keep (up to a -1) stays, at a new number
 * where it is in a place. */
void places_begin(struct places *p, struct fd_restore *r, int *keep);

int places_fill(struct places *p, struct err *e);

/* Close all that is in no place, but for @keep and what is to be mapped. */
int places_close_rest(const struct places *p, const int *keep, struct err *e);

void places_free(struct places *p);
static inline void cleanup_places_func(struct places *p)
{
	places_free(p);
}
#define cleanup_places __attribute__((cleanup(cleanup_places_func)))

#endif
