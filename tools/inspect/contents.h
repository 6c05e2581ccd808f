/*
 * contents.h - what a process's memory held, and where that is: in this checkpoint, in one
 * that it was made from, in a file, or nowhere because it was all zero.
 */
#ifndef TOOLS_INSPECT_CONTENTS_H
#define TOOLS_INSPECT_CONTENTS_H

#include <stdint.h>

#include "ckpt/store.h"
#include "lib/err.h"

enum place {
	PLACE_NONE,   /* not in the image: guards, vvar, memory that may be dropped */
	PLACE_ZERO,   /* all zero */
	PLACE_STORED, /* blocks of an extent */
	PLACE_FILE,   /* as in the mapped file */
	PLACE_VDSO,   /* in the note */
};

/* A part of a region that is all in one place. */
struct piece {
	uint64_t start, end; /* addresses */
	enum place place;
	const struct image *img;      /* STORED: the file that has the extent */
	const struct image_extent *x; /* STORED, and ZERO when an extent says so */
	uint32_t block;               /* STORED: number of the first in the extent */
	uint64_t offset;              /* FILE, VDSO: where it begins there */
};

struct contents;

/* Of process number @index of @c, which must stay open. */
struct contents *contents_open(const struct checkpoint *c, size_t index);
void contents_close(struct contents *m);

const struct image_region *contents_regions(const struct contents *m, size_t *count);

/* The piece of region @r that begins at @at, which lies in the region and is a multiple of
 * IMAGE_BLOCK. */
struct piece contents_piece(
	const struct contents *m, const struct image_region *r, uint64_t at);

/* How many bytes contents_read_piece() can give of @p (of place STORED, FILE or VDSO), a
 * multiple of IMAGE_BLOCK: less than its size where a mapped file ends. -1 with @e filled when
 * the file is not there any more or is another one. */
int64_t contents_readable(
	struct contents *m, const struct image_region *r, const struct piece *p, struct err *e);

/* Read @size bytes from address @at of @p, both multiples of IMAGE_BLOCK; stored blocks are
 * compared with their hashes. The piece must not be of place NONE. */
int contents_read_piece(struct contents *m, const struct image_region *r, const struct piece *p,
	uint64_t at, void *data, size_t size, struct err *e);

/* Read a word at any address. */
int contents_read_word(struct contents *m, uint64_t address, uint64_t *word, struct err *e);
/* Read @size bytes, which may go on from one region in the next. 0 or -1. */
int contents_read(struct contents *m, uint64_t address, void *data, size_t size);

/* An open descriptor, the caller's to close, of the mapped file number @module (from 1). Only
 * when it still is what was mapped. */
int contents_open_module(const struct contents *m, uint32_t module, struct err *e);

/* Blocks by place, of a region or a whole object. */
struct tally {
	uint64_t here;      /* stored in this checkpoint */
	uint64_t elsewhere; /* in another checkpoint of the chain */
	uint64_t zero;      /* recorded as zero */
};

/* Add up what extents say of @object from @start to @end. */
void contents_tally(const struct image *img, uint32_t object, uint64_t start, uint64_t end,
	struct tally *t);

/* The same of a region's private memory: nothing for a shared one. */
struct tally contents_region_tally(const struct image *img, const struct image_region *r);

#endif
