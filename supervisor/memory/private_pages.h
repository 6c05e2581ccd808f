/*
 * memory/private_pages.h - the regions of a process for its image, and which pages of private ones it
 * has made its own.
 *
 * To find these takes a walk over all page tables. Of a process that is to be copied, so that it can
 * run on while its memory is written, the walk over a large region waits until it does: then it
 * is made over the copy.
 */
#ifndef SUPERVISOR_MEMORY_PRIVATE_PAGES_H
#define SUPERVISOR_MEMORY_PRIVATE_PAGES_H

#include "supervisor/state/dump.h"

/* A region as it is. Regions come in the order of their addresses. */
void private_pages_add_region(struct dump *d, const struct image_region *r);

/* Whether all of [@start, @end) is in regions that have been added. */
bool private_pages_has_region(const struct dump *d, uint64_t start, uint64_t end);

/* Private memory, @r of the mapping @v: what the process has made its own. With d->may_wait of a
 * large region later, in private_pages_finish(). */
int private_pages_dump(struct dump *d, int pagemap, const struct vma *v,
	const struct image_region *r, struct err *e);

/* About how much will be found yet. */
uint64_t private_pages_expected(const struct dump *d);

/* Find what has been left for later: in d->copy, if there is one. Then all regions go to the image. */
int private_pages_finish(struct dump *d, struct err *e);

/* PF_* of the segment. */
uint32_t private_pages_segment_flags(const struct vma *v);

#endif
