/*
 * blocks.h - the way of memory into an image: source, filters, sink.
 *
 * A source names runs of blocks of an object and reads them. Each chunk of a run then goes
 * through the filters: zero blocks are dropped, blocks are hashed, and those whose hash
 * equals the parent checkpoint's become references; what is left is compressed, if it is to
 * be and becomes smaller by it, and goes to the sink, an image writer. Chunks are handled by
 * several threads at once.
 *
 * Runs that the source knows to be as they were at the parent checkpoint are neither read nor
 * hashed. A source may be a copy of a process that runs on (supervisor/target/copy.h).
 */
#ifndef CKPT_BLOCKS_H
#define CKPT_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "ckpt/image_read.h"
#include "ckpt/image_write.h"
#include "ckpt/pack.h"
#include "ckpt/throttle.h"

/* A run of blocks to be saved. */
struct block_run {
	uint64_t address; /* multiple of IMAGE_BLOCK */
	uint64_t size;    /* bytes, multiple of IMAGE_BLOCK */
	uint32_t object;
	bool clean;     /* the parent checkpoint has these blocks as they are now */
	bool keep_zero; /* zero blocks must be recorded (a file or the past lies below) */
	/* Read @size bytes of the run's object from @address into @data. Called by several
	 * threads at once. 0 or -1. */
	int (*read)(void *context, uint64_t address, void *data, size_t size, struct err *e);
	void *context;
};

struct block_job {
	const struct block_run *runs;
	size_t run_count;
	struct image_writer *writer;
	const struct image *parent; /* same file of the parent checkpoint, NULL: store all */
	/* For each source of @parent (index in its chain) the index in the new one's. */
	const uint32_t *parent_source;
	struct pack_choice pack;   /* how to compress */
	bool check_clean;          /* look whether clean blocks are so (for tests) */
	unsigned threads;          /* 0: as many as is sensible here */
	struct throttle *throttle; /* of what is stored; NULL: none */
	/* Asked between chunks: non-zero stops the work; fills the error. May be NULL. */
	int (*cancelled)(void *context, struct err *e);
	void *cancel_context;
	/* Bytes handled so far, for progress; may be NULL. */
	uint64_t *done;
};

/* Save all runs. On failure the first error seen is in @e. */
int blocks_write(const struct block_job *job, struct err *e);

#endif
