/* runs.h - runs of granules that nobody has: mapped ones (MMU_FREE) and addresses
 * (MMU_UNMAPPED). Neighbours of one state are always one run. */
#ifndef MMU_RUNS_H
#define MMU_RUNS_H

#include "mmu/mmu.h"

/* Granules [start, start + count) are in @state now, which is not MMU_USED. Returns where the
 * run that they are part of begins. */
uint32_t runs_give(struct mmu_device *d, uint32_t state, uint32_t start, uint32_t count);

/* Take [start, start + count) out of the run that begins at @run. Their state is left to the
 * caller. */
void runs_take(struct mmu_device *d, uint32_t run, uint32_t start, uint32_t count);

/* A run of at least @count granules in @state that @fits(d, run, count), or MMU_NONE. */
uint32_t runs_find(const struct mmu_device *d, uint32_t state, uint32_t count,
	int (*fits)(const struct mmu_device *d, uint32_t run, uint32_t count));

#endif
