/* slabs.h - small allocations: granules cut into objects of one size. */
#ifndef MMU_SLABS_H
#define MMU_SLABS_H

#include "mmu/mmu.h"

uint32_t slabs_object_size(uint32_t class);

/* Make the used granule @granule a slab. 0, or MMU_NO_MEMORY for its tables. */
int slabs_add(struct mmu *m, const struct mmu_driver *driver, struct mmu_device *d,
	uint32_t granule, uint32_t class);

/* Put @allocation into a slab of its class. 0 when there is none with room. */
int slabs_take(struct mmu_device *d, struct mmu_allocation *allocation);

/* Take it out. The granule when its slab has become empty and is no slab any more, else
 * MMU_NONE. */
uint32_t slabs_give(struct mmu *m, struct mmu_device *d, struct mmu_allocation *allocation);

/* The granule of a slab that is empty, and is no slab any more; MMU_NONE when all are in use.
 */
uint32_t slabs_give_empty(struct mmu *m, struct mmu_device *d);

/* What lies at @address in the slab, or NULL. */
struct mmu_allocation *slabs_find(const struct mmu_slab *slab, uint64_t address);

#endif
