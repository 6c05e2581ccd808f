/*
 * image_write_private.h - the inside of an image writer, shared by image_write.c (collecting),
 * image_files.c (where blocks go), image_hash_tables.c (where the parent's hashes are) and image_finish.c (the
 * metadata and the header, at close).
 */
#ifndef CKPT_IMAGE_WRITE_PRIVATE_H
#define CKPT_IMAGE_WRITE_PRIVATE_H

#include <pthread.h>

#include "ckpt/image_segments.h"
#include "ckpt/image_write.h"
#include "ckpt/string_table.h"

/* A file that blocks are written to. */
struct image_blocks_file {
	int fd;
	char *what;       /* for messages */
	uint64_t end;     /* where the next blocks go */
	uint32_t source;  /* its index in the chain */
	unsigned writers; /* threads that write to it just now */
};

struct image_writer {
	enum image_file_kind kind;
	uint8_t checkpoint_id[16];
	uint64_t incompat;
	struct image_maker maker;
	struct string_table strings;
	struct buf notes[IMAGE_NOTE_MAX]; /* contents, by type */
	struct buf core_notes;            /* encoded */
	struct buf ranges;                /* struct image_range */

	uint64_t stored;     /* bytes of blocks; atomic */
	unsigned files_most; /* how many there may be */
	bool in_turn;        /* for tests: blocks go to all of them, however few they are */
	int dirfd;           /* where they are made, and the name of the first: */
	char *name;

	pthread_mutex_t lock; /* of what follows */
	/* The first one is the image itself. */
	struct image_blocks_file files[IMAGE_FILES];
	unsigned file_count;
	struct buf extents; /* struct image_extent, in the order of recording */
	struct buf hashes;
	uint64_t hashed;  /* blocks with hashes, wherever these are */
	struct buf packs; /* struct image_pack */

	const struct image *parent; /* image_writer_parent(); NULL: none */
	struct buf tables; /* what hash_table of an extent is counted in: image_hash_tables.c */
};

/* Write @count pieces of @size bytes in all, a multiple of IMAGE_BLOCK, to a free place: one behind the other
 * from *offset on in the file *source. @pieces is changed. Thread-safe. */
int image_writer_blocks(struct image_writer *w, struct iovec *pieces, int count, size_t size,
	uint32_t *source, uint64_t *offset, struct err *e);

/* The same of what @from has at @from_offset, and was read into @data with @hashes: shared with it
 * where the file system can (FICLONERANGE); then both are of what is shared. */
int image_writer_shared_blocks(struct image_writer *w, int from, uint64_t from_offset,
	uint8_t *data, size_t size, uint8_t (*hashes)[IMAGE_HASH_SIZE], uint32_t *source,
	uint64_t *offset, struct err *e);

/* Append the checksums of pieces of @count hashes to @sums (uint64_t). */
void image_hash_sums(const uint8_t *hashes, uint64_t count, struct buf *sums);

/* Write the notes about hashes in other files, as far as extents need them. */
void image_writer_place_tables(struct image_writer *w);

/* Append an ELF note to @out. */
void image_writer_encode_note(
	struct buf *out, const char *owner, uint32_t type, const void *data, size_t size);

#endif
