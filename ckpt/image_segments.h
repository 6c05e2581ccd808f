/*
 * image_segments.h - what the core file's PT_LOADs say, from a process's ranges and extents.
 */
#ifndef CKPT_IMAGE_SEGMENTS_H
#define CKPT_IMAGE_SEGMENTS_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ckpt/image.h"
#include "lib/util.h"

/* Reads of zeros come from the hole behind the file's end. It is no larger than
 * IMAGE_HOLE_MAX, and no more than IMAGE_HOLE_LOADS segments point there. */
#define IMAGE_HOLE_MAX   (64ull << 20)
#define IMAGE_HOLE_LOADS 4096u

struct image_range {
	uint64_t start, end;
	uint32_t flags; /* PF_* */
	bool zero;      /* what no extent covers reads as zeros */
};

struct image_load {
	uint64_t address, memory_size;
	uint64_t file_offset, file_size; /* file_size 0: no contents */
	uint32_t flags;
	bool hole; /* file_offset counts from the start of the hole */
};

/* Append to @loads (struct image_load) the segments of all ranges, in their order. @extents
 * belong to object 0 and are sorted. Returns the size that the hole must have. */
uint64_t image_loads(const struct image_range *ranges, size_t range_count,
	const struct image_extent *extents, size_t extent_count, struct buf *loads);

/* The program header of @load, in a file whose hole is at offset @hole. */
Elf64_Phdr image_load_header(const struct image_load *load, uint64_t hole);

#endif
