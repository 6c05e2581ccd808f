/*
 * memory/lazy_ranges.h - which memory of a process can be filled after it has resumed.
 */
#ifndef SUPERVISOR_MEMORY_LAZY_RANGES_H
#define SUPERVISOR_MEMORY_LAZY_RANGES_H

#include "ckpt/image_read.h"
#include "lib/address_ranges.h"

/* Append the ranges of @img, whole regions, to @ranges (lib/address_ranges.h). */
void lazy_list(const struct image *img, struct buf *ranges);

/* The bytes that the image has of @g, of its @count extents @x; those from *@at on are of it or come after. */
uint64_t stored_in_region(
	const struct image_region *g, const struct image_extent *x, size_t count, size_t *at);

#endif
