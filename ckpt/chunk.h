/*
 * chunk.h - a piece of a run of blocks on its way through the filters of blocks.h, in the hands of
 * one thread.
 *
 * Where hashes are known before the blocks are read, a chunk passes twice: chunk_record_known() records
 * what need not be read, chunk_filter() has what is left.
 */
#ifndef CKPT_CHUNK_H
#define CKPT_CHUNK_H

#include "ckpt/blocks.h"

#define CHUNK_BLOCKS 256u
#define CHUNK_SIZE   ((size_t)CHUNK_BLOCKS * IMAGE_BLOCK)
/* Of what is not compressed a chunk has this much: it is read, hashed and written, and stays in a processor's
 * second-level cache in between (doc/measurements/speed.md, "The size of a chunk"). Packs begin at pages in each
 * chunk, so smaller ones make a larger image. */
#define CHUNK_SIZE_STORED ((size_t)64 * IMAGE_BLOCK)

/* A set of blocks of a chunk. */
struct chunk_blocks {
	uint64_t bits[CHUNK_BLOCKS / 64];
};

static inline bool chunk_has(const struct chunk_blocks *set, uint32_t i)
{
	return set->bits[i / 64] >> i % 64 & 1;
}

/* What becomes of a block. */
enum fate {
	FATE_STORE,
	FATE_DROP, /* zero, and reads as zero without being recorded */
	FATE_ZERO, /* zero, to be recorded */
	FATE_PARENT, /* in another file: of another checkpoint, or another process (common_blocks.h) */
	FATE_PACKED, /* one of chunk.packs has it */
	FATE_OTHER,  /* it is not for this pass */
};

/* A worker's piece of a run, and what the filters found out about its blocks. */
struct chunk {
	const struct block_run *run;
	uint64_t address;
	uint32_t blocks;
	struct chunk_blocks wanted; /* the others are not for this pass */
	uint8_t *data;              /* page-aligned, CHUNK_SIZE */
	enum fate fate[CHUNK_BLOCKS];
	uint8_t hash[CHUNK_BLOCKS][IMAGE_HASH_SIZE];
	struct block_place parent[CHUNK_BLOCKS]; /* FATE_PARENT */
	bool one; /* all blocks are FATE_PARENT, one behind the other from parent[0] on */

	enum image_pack_method method;
	struct packer *packer; /* NULL: nothing is to be compressed */
	uint8_t *packed;       /* CHUNK_SIZE */
	size_t packed_size;    /* that the packs take of it */
	struct packed_run packs[CHUNK_BLOCKS];
	size_t pack_count;

	uint8_t *
		others; /* CHUNK_SIZE: what other processes' files have (common_blocks.h); NULL: none yet */
};

/* NULL: there is no memory for it. */
struct chunk *chunk_new(const struct pack_choice *choice);
void chunk_free(struct chunk *c);

/* Be @blocks blocks of @run from @address on. */
void chunk_begin(
	struct chunk *c, const struct block_run *run, uint64_t address, uint32_t blocks);

/* Record the blocks that are known to be zeros or the parent's by their hashes; c->wanted is what is left,
 * *left whether there is any. */
int chunk_record_known(
	struct chunk *c, const struct blocks_to_write *to_write, bool *left, struct err *e);
/* Read the wanted blocks and find out what becomes of them. */
int chunk_filter(struct chunk *c, const struct blocks_to_write *to_write, struct err *e);
/* How many of its blocks are wanted. */
uint32_t chunk_wanted_blocks(const struct chunk *c);
/* How much will be stored of it. */
uint64_t chunk_stored_bytes(const struct chunk *c);
int chunk_write(struct chunk *c, struct image_writer *w, struct err *e);

#endif
