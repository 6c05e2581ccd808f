/* slabs.h - small allocations: granules cut into objects of one size. */
#ifndef DEVMEM_SLABS_H
#define DEVMEM_SLABS_H

#include "devmem/devmem.h"

uint32_t slabs_object_size(uint32_t class);

/* Make the used granule @granule a slab. 0, or DEVMEM_NO_MEMORY for its tables. */
int slabs_add(struct devmem *m, const struct devmem_driver *driver, struct devmem_device *d,
	uint32_t granule, uint32_t class);

/* Put @allocation into a slab of its class. 0 when there is none with room. */
int slabs_take(struct devmem_device *d, struct devmem_allocation *allocation);

/* Take it out. The granule when its slab has become empty and is no slab any more, else
 * DEVMEM_NONE. */
uint32_t slabs_give(
	struct devmem *m, struct devmem_device *d, struct devmem_allocation *allocation);

/* The granule of a slab that is empty, and is no slab any more; DEVMEM_NONE when all are in use.
 */
uint32_t slabs_give_empty(struct devmem *m, struct devmem_device *d);

/* What lies at @address in the slab, or NULL. */
struct devmem_allocation *slabs_find(const struct devmem_slab *slab, uint64_t address);

#endif
