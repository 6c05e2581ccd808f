/*
 * chunk.h - pieces of runs of blocks on their way through the filters of blocks.h, in the hands of
 * one thread: one piece of a long run, or as many of short ones as there is room for, as what is read and written
 * at once takes fewer system calls.
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
	FATE_OTHER,  /* it is not for this pass, or in one of chunk.references */
};

/* Blocks of a chunk, one behind the other, that another file has in the same way. */
struct chunk_reference {
	uint32_t first, blocks;
	struct block_place place;
};

/* A worker's pieces of runs, and what the filters found out about their blocks. */
struct chunk {
	const struct block_run
		*run; /* the first; what pieces have in common: chunk_may_add() */
	uint32_t blocks;
	bool scattered; /* blocks may not be one behind the other: address has more than the first */
	uint64_t address[CHUNK_BLOCKS];
	struct chunk_blocks wanted;    /* the others are not for this pass */
	struct chunk_blocks keep_zero; /* as their runs have it */
	uint8_t *data;                 /* page-aligned, CHUNK_SIZE */
	enum fate fate[CHUNK_BLOCKS];
	uint8_t hash[CHUNK_BLOCKS][IMAGE_HASH_SIZE];
	struct block_place parent[CHUNK_BLOCKS]; /* FATE_PARENT */
	/* Blocks that are as the parent has them, known before they are looked at one by one */
	struct chunk_reference references[CHUNK_BLOCKS];
	uint32_t reference_count;
	bool settled; /* these are all blocks: fate is not filled */

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
/* Whether blocks of @run may be added: they are read in the same way as those that are there, of the same object, and no
 * others know their hashes or share them with a file. */
bool chunk_may_add(const struct chunk *c, const struct block_run *run);
/* Add @blocks blocks of @run from @address on, behind those that are there; CHUNK_BLOCKS in all, at most. */
void chunk_add(struct chunk *c, const struct block_run *run, uint64_t address, uint32_t blocks);

/* Record the blocks that are known to be zeros or the parent's by their hashes; c->wanted is what is left,
 * *left whether there is any. */
int chunk_record_known(
	struct chunk *c, const struct blocks_to_write *to_write, bool *left, struct err *e);
/* Read the wanted blocks, but those that are known not to have changed, and find out what becomes of them. */
int chunk_filter(struct chunk *c, const struct blocks_to_write *to_write, struct err *e);
/* The address of block @i. */
uint64_t chunk_address(const struct chunk *c, uint32_t i);
/* How many of its blocks are wanted. */
uint32_t chunk_wanted_blocks(const struct chunk *c);
/* How much will be stored of it. */
uint64_t chunk_stored_bytes(const struct chunk *c);
int chunk_write(struct chunk *c, struct image_writer *w, struct err *e);

#endif
