/*
 * image_write.h - write one file of an image: blocks first, then what describes them.
 *
 *	image_writer_open()
 *	image_writer_note() / image_writer_string()	any time before close
 *	image_writer_data() and its like		from several threads at once
 *	image_writer_close()
 *
 * The writer is the sink of the block pipeline (blocks.h). Not thread-safe but where said.
 */
#ifndef CKPT_IMAGE_WRITE_H
#define CKPT_IMAGE_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "ckpt/image.h"
#include "lib/err.h"

struct image;
struct image_writer;

/* Create @name (mode 0600, must not exist) in directory @dirfd. @what names it in messages.
 * NULL on failure. */
struct image_writer *image_writer_open(int dirfd, const char *name, enum image_file_kind kind,
	const uint8_t checkpoint_id[16], const char *what, struct err *e);

/* About @bytes of blocks are to come: when that is much, let them go to several files, so that
 * threads that write at the same time need not wait for each other. @dirfd and @name are as in
 * image_writer_open(); @dirfd stays open until close. The note CHAIN must have its first entry. */
void image_writer_expect(struct image_writer *w, int dirfd, const char *name, uint64_t bytes);

/* How many files blocks may go to. */
unsigned image_writer_files(const struct image_writer *w);
/* How many files the image may refer to when it is complete, itself included. */
size_t image_writer_sources(const struct image_writer *w);

/* Append @link to the note CHAIN; @process: it is about the file of that name, NULL: of this one's. */
void image_writer_chain(
	struct image_writer *w, const struct image_chain *link, const char *process);
/* Append what @other, of the same checkpoint, has at @source of its chain; returns the index in this
 * one's. Nothing is added to @other meanwhile. Thread-safe. */
uint32_t image_writer_peer(
	struct image_writer *w, const struct image_writer *other, uint32_t source);
/* How many entries of the chain are about other processes' files. */
size_t image_writer_peers(const struct image_writer *w);

/* Put @s into the string table; equal strings share a place. Returns its offset. */
uint32_t image_writer_string(struct image_writer *w, const char *s);

/* Append @size bytes to the note @type of owner TRECR; calls with the same type add up to one
 * note. */
void image_writer_note(
	struct image_writer *w, enum image_note type, const void *data, size_t size);

/* Set bits of image_super.incompat. */
void image_writer_incompat(struct image_writer *w, uint64_t bits);

/* Say in the head which trecr makes the image; @folder "": it is not installed. */
void image_writer_maker(struct image_writer *w, const char *version, const char *folder);

/* Add a standard note (owner "CORE" or "LINUX"), in the order of the calls; these come before
 * the TRECR ones. @owner must stay valid until close. */
void image_writer_core_note(struct image_writer *w, const char *owner, uint32_t type,
	const void *data, size_t size);

/* Blocks that lie one behind the other: @blocks from @address on, with their bytes, and 16 of a hash for each. */
struct block_row {
	uint64_t address;
	const void *data; /* page-aligned */
	const uint8_t *hashes;
	uint32_t blocks;
};

#define IMAGE_ROWS_MOST 256

/* Store @count rows of blocks of @object, IMAGE_ROWS_MOST at most: writes them at a free place of a file, all at once,
 * and records an extent for each. Thread-safe. */
int image_writer_rows(struct image_writer *w, uint32_t object, const struct block_row *rows,
	size_t count, struct err *e);

/* The same of one row. */
int image_writer_data(struct image_writer *w, uint32_t object, uint64_t address,
	const void *data, uint32_t blocks, const uint8_t *hashes, struct err *e);

/* The same of what file @from has at offset @address, and was read into @data with @hashes: where
 * the file system can, the image shares the blocks with the file, and @data and @hashes are
 * afterwards of what they share. */
int image_writer_file_data(struct image_writer *w, uint32_t object, uint64_t address, int from,
	uint8_t *data, uint32_t blocks, uint8_t (*hashes)[IMAGE_HASH_SIZE], struct err *e);

/* Blocks of which one pack has been made. */
struct packed_run {
	uint64_t address;
	const uint8_t *hashes;  /* of the blocks */
	struct image_pack pack; /* file_offset: in the data that goes with it */
};

/* Store packs of blocks of @object: writes the @size bytes @data, whole pages, at a free place
 * of a file and records @count extents. Thread-safe. */
int image_writer_packs(struct image_writer *w, uint32_t object, const void *data, size_t size,
	const struct packed_run *runs, size_t count, struct err *e);

/* Where blocks are that another file has. */
struct block_place {
	uint32_t source;               /* of the file, in the chain; not 0 */
	uint32_t skip;                 /* blocks of the pack before the first */
	uint64_t offset;               /* in the file */
	const struct image_pack *pack; /* NULL: they are not compressed */
	/* Where their hashes are: 0 are to be recorded here; 1 with the parent's own, which
	 * image_writer_parent() has named, 2 in the first of its tables, ... */
	uint32_t table;
	uint32_t first_hash; /* index there */
};

/* @parent is the image that @table of a block_place is about; @parent_source has for each entry of its
 * chain the index in that of @w. It stays open until @w is closed. May be called again with the same. */
void image_writer_parent(
	struct image_writer *w, const struct image *parent, const uint32_t *parent_source);

/* Read and check the parent's hashes that have been referred to, as far as nobody has before: those of blocks that are known
 * not to have changed. When all has been recorded. 0, or -1: the image could not be restarted. */
int image_writer_check_tables(const struct image_writer *w, struct err *e);

/* Record @blocks blocks that another file has; @hashes only where place->table is 0. Thread-safe. */
void image_writer_reference(struct image_writer *w, uint32_t object, uint64_t address,
	const struct block_place *place, uint32_t blocks, const uint8_t *hashes);

/* Record zero blocks over what would not be zero by itself. Thread-safe. */
void image_writer_zero(
	struct image_writer *w, uint32_t object, uint64_t address, uint32_t blocks);

/* Declare a range of virtual addresses that gets PT_LOADs (process files): for gdb. Between
 * extents the range has memory without contents; with @zero such gaps read as zeros, from a
 * hole behind the file's end. Calls come in the order of addresses. @flags are PF_*. */
void image_writer_range(
	struct image_writer *w, uint64_t start, uint64_t end, uint32_t flags, bool zero);

/* Bytes of blocks written so far. */
uint64_t image_writer_stored(const struct image_writer *w);
/* Extents that have been recorded so far, and the bytes of their hashes. */
void image_writer_recorded(const struct image_writer *w, size_t *extents, size_t *hashes);

/* Write extents, hashes, notes, program headers and the super block. With @sync the file is
 * on disk when this returns. Frees @w in any case; on failure the file is of no use. */
int image_writer_close(struct image_writer *w, bool sync, struct err *e);

/* Give up: frees @w and leaves the incomplete file. */
void image_writer_abort(struct image_writer *w);

#endif
