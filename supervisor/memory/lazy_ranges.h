/*
 * memory/lazy_ranges.h - which memory of a process can be filled after it has resumed.
 */
#ifndef SUPERVISOR_MEMORY_LAZY_RANGES_H
#define SUPERVISOR_MEMORY_LAZY_RANGES_H

#include "ckpt/image_read.h"
#include "lib/address_ranges.h"

/* Append the ranges of @img, whole regions, to @ranges (lib/address_ranges.h). */
void lazy_list(const struct image *img, struct buf *ranges);

#endif
