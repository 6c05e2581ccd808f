/*
 * address_ranges.h - lists of address ranges that do not overlap, in the order of their addresses.
 */
#ifndef LIB_ADDRESS_RANGES_H
#define LIB_ADDRESS_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/util.h"

struct address_range {
	uint64_t start, end;
};

/* Append a range, which must not begin before the end of the last one. */
void address_ranges_add(struct buf *ranges, uint64_t start, uint64_t end);

/* From @at, which is below @end: the end of what is in @ranges (*inside), or not, like it; @end at most. */
uint64_t address_ranges_part(const struct buf *ranges, uint64_t at, uint64_t end, bool *inside);

#endif
