/*
 * memory/lazy_missing.h - which pages of an address space are still to be filled, and what with. They
 * follow what the program does to its mappings.
 */
#ifndef SUPERVISOR_MEMORY_LAZY_MISSING_H
#define SUPERVISOR_MEMORY_LAZY_MISSING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ckpt/image_read.h"
#include "lib/util.h"

/* What is at @start of the address space now was at @origin in the image. */
struct missing_piece {
	uint64_t start, end, origin;
};

/* All zero: nothing is missing. */
struct missing {
	struct buf pieces; /* struct missing_piece, in no order; none overlap */
};

void missing_add(struct missing *m, uint64_t start, uint64_t end, uint64_t origin);
/* From @start to @end nothing is missing, or it is not there any more. */
void missing_cut(struct missing *m, uint64_t start, uint64_t end);
/* What was at @from is at @to. */
void missing_move(struct missing *m, uint64_t from, uint64_t to, uint64_t size);
/* The piece that @address is in, or NULL. */
const struct missing_piece *missing_find(const struct missing *m, uint64_t address);
/* A copy. */
struct missing missing_copy(const struct missing *m);

/* Contents that the image has for a part of a piece. */
struct missing_blocks {
	const struct image_extent *extent;
	uint32_t first, count; /* of its blocks */
	uint64_t address;      /* where they belong now */
};

/* Blocks around @address, @most at most, which is in @piece; of a pack all. False when the image has
 * zeros there. */
bool missing_around(const struct image *img, const struct missing_piece *piece,
	uint64_t address, uint32_t most, struct missing_blocks *out);
/* The first blocks of @piece, @most at most. False when it has none. */
bool missing_first(const struct image *img, const struct missing_piece *piece, uint32_t most,
	struct missing_blocks *out);

#endif
