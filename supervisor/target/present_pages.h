/*
 * present_pages.h - which pages a shared mapping of memory has. Reading a missing page
 * would make it, and a program may have mapped far more than there is memory.
 */
#ifndef SUPERVISOR_TARGET_PRESENT_PAGES_H
#define SUPERVISOR_TARGET_PRESENT_PAGES_H

#include "supervisor/target/remote.h"

struct present_run {
	uint64_t start, end;
};

/* What present_pages() needs of memory in the target, in bytes, for one mapping. */
#define PRESENT_SCRATCH 65536

/* Append the runs of [start, end) of a shared mapping of @r's process that hold something
 * (struct present_run), by address; of many small ones neighbours are put together. Of memory
 * only, without huge pages that are set aside, and with nothing of it swapped out. @scratch has
 * PRESENT_SCRATCH bytes, but no more than one for each page are touched. */
int present_pages(struct remote *r, uint64_t start, uint64_t end, uint64_t scratch,
	struct buf *runs, struct err *e);

/* The first page of [start, end) that cannot be read, as it is behind the end of what is mapped
 * (SIGBUS); @end: all can be. */
uint64_t present_end(const struct process *p, uint64_t start, uint64_t end);

#endif
