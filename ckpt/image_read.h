/*
 * image_read.h - read one file of an image. Trusts nothing: every offset, count and string
 * that a caller gets from here has been checked against the file, and the head's and the
 * metadata's hashes have been compared. Blocks are compared when they are read.
 *
 * An open image is not written to, so any number of threads may read it.
 */
#ifndef CKPT_IMAGE_READ_H
#define CKPT_IMAGE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ckpt/image.h"
#include "lib/err.h"

#define IMAGE_NAMED_KINDS 2

struct image {
	int fd;
	char *path; /* for messages */
	struct image_super super;
	void *meta; /* the metadata, read whole, or all but the hashes (struct image_parts) */

	/* Of the hashes in the file; 0: nothing is left out */
	uint64_t unread_offset, unread_size;

	const struct image_extent *extents;
	size_t extent_count;
	/* Of this file; IMAGE_HASH_SIZE bytes each. They may not be there yet: image_hashes() */
	const uint8_t *hashes;
	size_t hash_count;
	/* Of this file, and those of IMAGE_NOTE_HASH_TABLES; see image_hashes.c */
	struct image_table *tables;
	size_t table_count; /* without the first */
	const char *strings;
	size_t strings_size;

	struct image_note_data {
		const void *data;
		size_t size;
	} notes[IMAGE_NOTE_MAX]; /* by type; data NULL: absent */

	/* By name, of objects and of descriptions: image_names.h */
	struct image_name_index {
		uint32_t *
			first; /* by hash: the number (from 1) of the first in its list; 0: none */
		uint32_t *next; /* of each: the next in its list */
		size_t slots;   /* a power of two; 0: nothing has a name */
	} names[IMAGE_NAMED_KINDS];

	/* The other files that hold blocks, open, by source; see image_chain.c */
	struct image *sources;
	size_t source_count;
};

/* Open @name in @dirfd, which must be of kind @kind. The file must belong to us or root and
 * not be writable by others. @path is for messages. NULL on failure. */
struct image *image_open(int dirfd, const char *name, const char *path,
	enum image_file_kind kind, struct err *e);
/* The same from an open descriptor, which the image then owns (also on failure); no check of
 * owner and mode. The fuzzer comes in here. */
struct image *image_open_fd(int fd, const char *path, enum image_file_kind kind, struct err *e);
void image_close(struct image *img);

/* Which trecr says that it made the file @fd, whatever the version of its format: nothing of that
 * has been checked. Fails when it does not say. */
int image_read_maker(int fd, struct image_maker *m);

/* String at @offset; "" for 0 and for anything outside. Belongs to the image. */
const char *image_string(const struct image *img, uint32_t offset);

/* The note's array and its number of elements of @size bytes; NULL and 0 when absent. A size
 * that is no multiple of @size was refused at opening. */
const void *image_note(
	const struct image *img, enum image_note type, size_t size, size_t *count);
#define image_note_array(img, type, elem, count)                                               \
	((const elem *)image_note((img), (type), sizeof(elem), (count)))

/* The number alone. */
size_t image_note_count(const struct image *img, enum image_note type, size_t size);

/* Extents of @object, sorted by address. */
const struct image_extent *image_extents(
	const struct image *img, uint32_t object, size_t *count);

/* The extent that covers block @address of @object, or NULL. */
const struct image_extent *image_find(
	const struct image *img, uint32_t object, uint64_t address);

/* The pack that the blocks of @x are in; NULL: they are not compressed, or (before it has been
 * checked) there is none of that number. */
const struct image_pack *image_pack_of(const struct image *img, const struct image_extent *x);

/* Whether its blocks are in a file of another checkpoint. */
bool image_extent_is_elsewhere(const struct image *img, const struct image_extent *x);

/* Whether a checkpoint's file of this name has blocks only, which another one refers to. */
bool image_is_blocks_file(const char *name);

/* Where in the file that holds them the bytes of @x begin, and how many they are: for a PACKED
 * extent, the bytes of its whole pack. */
uint64_t image_extent_place(
	const struct image *img, const struct image_extent *x, uint64_t *size);

/* Hashes of @count blocks (at least 1) from number @first of @x on, 16 bytes each. They are read the first time:
 * where another file has them, the chain must be open. NULL: they cannot be, or are damaged. Thread-safe. */
const uint8_t *image_hashes(const struct image *img, const struct image_extent *x,
	uint32_t first, uint32_t count, struct err *e);
/* The same of one block. */
const uint8_t *image_hash(
	const struct image *img, const struct image_extent *x, uint32_t block);
/* The same of hash number @first on of @table, 0 or as in an extent, which must have them. */
const uint8_t *image_hashes_of(
	const struct image *img, uint32_t table, uint64_t first, uint64_t count, struct err *e);
/* Read all that extents need and all of this file, so that asking for them does not fail afterwards. */
int image_need_hashes(const struct image *img, struct err *e);
/* Where in its file its own hashes begin. */
uint64_t image_hashes_offset(const struct image *img);
/* The checksums of its pieces; NULL: it has none, and has been read whole. */
const uint64_t *image_own_sums(const struct image *img);

/* Open the other files that extents of @img point to: @dir is the directory that it is in itself,
 * @parent the directory that holds the checkpoints, @name the file's name in each. Checks ids and
 * bounds. */
int image_open_chain(struct image *img, int dir, int parent, const char *name, struct err *e);

/* The file that holds @x's blocks: an open descriptor of the image's (never close it). */
int image_source_fd(const struct image *img, const struct image_extent *x);

/* Read @blocks blocks from number @first of @x into @data and compare their hashes. Compressed
 * ones come as they were before. */
int image_read_blocks(const struct image *img, const struct image_extent *x, uint32_t first,
	uint32_t blocks, void *data, struct err *e);
/* Says so of the block @address of @x. */
int image_damaged(
	const struct image *img, const struct image_extent *x, uint64_t address, struct err *e);

/* Read and compare all that no check at opening has compared: the blocks that lie in or are
 * referred to by this file, and the hole at its end. Moves the file's position. */
int image_check_all(const struct image *img, struct err *e);

#endif
