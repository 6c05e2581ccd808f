/* runs.h - runs of granules that nobody has: mapped ones (DEVMEM_FREE) and addresses
 * (DEVMEM_UNMAPPED). Neighbours of one state are always one run. */
#ifndef DEVMEM_RUNS_H
#define DEVMEM_RUNS_H

#include "devmem/devmem.h"

/* Granules [start, start + count) are in @state now, which is not DEVMEM_USED. Returns where the
 * run that they are part of begins. */
uint32_t runs_give(struct devmem_device *d, uint32_t state, uint32_t start, uint32_t count);

/* Take [start, start + count) out of the run that begins at @run. Their state is left to the
 * caller. */
void runs_take(struct devmem_device *d, uint32_t run, uint32_t start, uint32_t count);

/* A run of at least @count granules in @state that @fits(d, run, count), or DEVMEM_NONE. */
uint32_t runs_find(const struct devmem_device *d, uint32_t state, uint32_t count,
	int (*fits)(const struct devmem_device *d, uint32_t run, uint32_t count));

#endif
