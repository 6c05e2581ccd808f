/*
 * memory/lazy_ranges.h - which memory of a process can be filled after it has resumed.
 */
#ifndef SUPERVISOR_MEMORY_LAZY_RANGES_H
#define SUPERVISOR_MEMORY_LAZY_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "ckpt/image_read.h"
#include "lib/util.h"

struct lazy_range {
	uint64_t start, end; /* of a whole region */
};

/* Append the ranges of @img to @ranges, by address. */
void lazy_list(const struct image *img, struct buf *ranges);

/* From @at, which is below @end: the end of what is lazy (*lazy), or not, like it; @end at most.
 */
uint64_t lazy_part(const struct buf *ranges, uint64_t at, uint64_t end, bool *lazy);

#endif
