/* extents.h - physical memory: what the driver has made and mapped in one piece. */
#ifndef DEVMEM_EXTENTS_H
#define DEVMEM_EXTENTS_H

#include "devmem/devmem.h"

/* The most granules in one: memory goes back to the driver in whole extents only. */
#define EXTENT_MAX 256u

/* Put memory under @count unmapped granules from @start on, in extents of @piece granules. They
 * are of no run after it; their state is left to the caller. Nothing has changed on failure. */
int extents_map(struct devmem_device *d, const struct devmem_driver *driver, uint32_t start,
	uint32_t count, uint32_t piece);

/* Return those extents to the driver that lie in the free run at @run as a whole. NULL for
 * @driver: they are gone already. */
void extents_release(struct devmem_device *d, const struct devmem_driver *driver, uint32_t run);

/* Would taking @count granules from the start of the free run at @run leave much of an extent
 * that nobody had? Such a rest could not be given back. 1 if not. */
int extents_spare(const struct devmem_device *d, uint32_t run, uint32_t count);

#endif
