/*
 * descriptor_numbers.h - at a restart, in each process: its descriptors at their numbers, and
 * nothing else open.
 */
#ifndef SUPERVISOR_FD_TABLE_DESCRIPTOR_NUMBERS_H
#define SUPERVISOR_FD_TABLE_DESCRIPTOR_NUMBERS_H

#include "supervisor/fd/fd.h"

struct descriptor_numbers {
	struct fd_restore *r;
	int *open; /* as it was in @r: processes that share memory have tables of their own */
	size_t count; /* of numbers: above all that are a place or hold something needed */
	int **holds;  /* by number: where it is noted that something needed is there; NULL */
};

/* For the process that @r has turned to. What is in @keep (up to a -1) stays, at a new number
 * where it is in a place. */
void descriptor_numbers_begin(struct descriptor_numbers *p, struct fd_restore *r, int *keep);

int descriptor_numbers_fill(struct descriptor_numbers *p, struct err *e);

/* Close all that is in no place, but for @keep and what is to be mapped. */
int descriptor_numbers_close_rest(
	const struct descriptor_numbers *p, const int *keep, struct err *e);

void descriptor_numbers_free(struct descriptor_numbers *p);
static inline void cleanup_descriptor_numbers_func(struct descriptor_numbers *p)
{
	descriptor_numbers_free(p);
}
#define cleanup_descriptor_numbers __attribute__((cleanup(cleanup_descriptor_numbers_func)))

#endif
