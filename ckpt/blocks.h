/*
 * blocks.h - the way of memory into an image: source, filters, sink.
 *
 * A source names runs of blocks of an object and reads them. Each chunk of a run then goes
 * through the filters: zero blocks are dropped, blocks are hashed, and those whose hash
 * equals the parent checkpoint's, or that another process of the tree has, become references; what is left is
 * compressed, if it is to be and becomes smaller by it, and goes to the sink, an image writer. Chunks are handled by
 * several threads at once.
 *
 * Runs that the source knows to be as they were at the parent checkpoint are neither read nor
 * hashed. A source may know hashes without reading, as memory of a GPU is hashed there: then only
 * blocks are read that are to be stored. A source may be a copy of a process that runs on
 * (supervisor/target/process_copy.h).
 */
#ifndef CKPT_BLOCKS_H
#define CKPT_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "ckpt/image_read.h"
#include "ckpt/image_write.h"
#include "ckpt/pack.h"
#include "ckpt/throttle.h"

/* Bytes at @address of an object, to be read into @data. */
struct block_piece {
	uint64_t address;
	size_t size;
	void *data;
};

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
	/* The same of @count pieces, CHUNK_BLOCKS at most (chunk.h); NULL: one after the other is as good. */
	int (*read_pieces)(
		void *context, const struct block_piece *pieces, size_t count, struct err *e);
	/* The hashes of @count blocks from @address on; NULL: the source does not know any. Called
	 * like read. 0; 1: it does not know these; or -1. */
	int (*hash)(void *context, uint64_t address, size_t count,
		uint8_t (*hashes)[IMAGE_HASH_SIZE], struct err *e);
	/* With hash: that [@address, @address + @size) will be read, when that is known of all
	 * runs, and nothing has been read of any with hashes. Called by one thread, in the order
	 * of the runs and their addresses. */
	void (*expect)(void *context, uint64_t address, uint64_t size);
	void *context;
	/* The open file that has the run's bytes at the same offsets, for the image to share them
	 * where the file system can; NULL: none. */
	const int *file;
};

/* What is saved, where to, and how. */
struct blocks_to_write {
	const struct block_run *runs;
	size_t run_count;
	struct image_writer *writer;
	const struct image *parent; /* same file of the parent checkpoint, NULL: store all */
	/* For each source of @parent (index in its chain) the index in the new one's. */
	const uint32_t *parent_source;
	struct peers
		*peers; /* what other processes have already (common_blocks.h); NULL: nothing */
	struct pack_choice pack; /* how to compress */
	bool check_clean;        /* look whether clean blocks are so (for tests) */
	unsigned threads;        /* 0: as many as is sensible here, */
	bool half; /* and with 0 half as many: the program runs, and nobody waits */
	struct throttle *throttle; /* of what is stored; NULL: none */
	/* Asked between chunks: non-zero stops the work; fills the error. May be NULL. */
	int (*cancelled)(void *context, struct err *e);
	void *cancel_context;
	/* Bytes handled so far, for progress; may be NULL. */
	uint64_t *done;
};

/* Save all runs. On failure the first error seen is in @e. */
int blocks_write(const struct blocks_to_write *to_write, struct err *e);
/* The same of @count files, each with a writer of its own, at the same time. What they are asked for alike (pack,
 * threads) is the first one's. */
int blocks_write_files(const struct blocks_to_write *files, size_t count, struct err *e);

/* The same of files that come one after the other, of which no run has hashes: those that are there are written while the
 * caller gathers others. */
struct blocks_stream;
/* Of at most @room files. */
struct blocks_stream *blocks_stream_begin(size_t room);
/* Write @file, which is the caller's and stays as it is until the end. */
void blocks_stream_add(struct blocks_stream *stream, const struct blocks_to_write *file);
/* Write what is left; or, with @give_up, write nothing more, and fail. */
int blocks_stream_end(struct blocks_stream *stream, bool give_up, struct err *e);

#endif
