/*
 * filler.h - pieces of the driver's heaps that are taken for a while, so that what comes later
 * finds the one place left that it is to have (place_exhaust.c).
 *
 * What variables of modules lie in can be had in one way only: by a module with a variable.
 * Managed memory has calls of its own.
 */
#ifndef LOWER_CUDA_FILLER_H
#define LOWER_CUDA_FILLER_H

#include <stdint.h>

enum filler_heap {
	FILLER_VARIABLES,         /* one of each context */
	FILLER_MANAGED_VARIABLES, /* one for all contexts */
	FILLER_MANAGED,           /* cuMemAllocManaged: one of each context */
};

struct filler {
	uint64_t address;
	void *module; /* NULL: managed memory */
	void *context;
};

/* Take @size bytes in the current context, which is @context, where the driver likes. Functions
 * return 0, or -1 by agent_fail(). */
int filler_take(enum filler_heap heap, uint64_t size, void *context, struct filler *f);
/* Give it back. The context may be another one now, and is current then. */
int filler_give(const struct filler *f);

#endif
