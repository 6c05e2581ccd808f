/*
 * memory/place_blocks.h - blocks of images into the memory of a stopped process, by several threads.
 */
#ifndef SUPERVISOR_MEMORY_PLACE_BLOCKS_H
#define SUPERVISOR_MEMORY_PLACE_BLOCKS_H

#include "ckpt/image_read.h"
#include "lib/util.h"

/* Part of the extent @x of @img: it goes to the addresses that the extent is of. */
struct placed_blocks {
	const struct image *img;
	const struct image_extent *x;
	uint32_t first, blocks;
};

/* Append blocks @first to @first + @blocks of @x to @list (struct placed_blocks), in pieces that a thread takes at a
 * time. */
void place_blocks_add(struct buf *list, const struct image *img, const struct image_extent *x,
	uint32_t first, uint32_t blocks);

/* Read, decompress, compare with their hashes and write all of @list into the memory of @pid, where it is mapped to
 * be written to. @mem_fd: its /proc/PID/mem, for where another way is forbidden. @threads: so many; 0: as many as
 * there are processors. */
int place_blocks(
	const struct buf *list, pid_t pid, int mem_fd, unsigned threads, struct err *e);

#endif
