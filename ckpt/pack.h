/*
 * pack.h - blocks compressed together, with LZ4 or Zstandard.
 */
#ifndef CKPT_PACK_H
#define CKPT_PACK_H

#include <stddef.h>

#include "ckpt/image.h"
#include "lib/err.h"

/* How to compress. All zero: not at all. */
struct pack_choice {
	enum image_pack_method method;
	int level; /* Zstandard's */
};

/* "lz4", "zstd", "zstd:LEVEL" or "none". */
int pack_choice_parse(struct pack_choice *choice, const char *text, struct err *e);

/* The same as a text, which pack_choice_parse() reads, in @room. */
#define PACK_CHOICE_TEXT 16
const char *pack_choice_text(const struct pack_choice *choice, char room[PACK_CHOICE_TEXT]);

/* One for each thread that compresses. NULL: there is no memory for it. */
struct packer *packer_new(const struct pack_choice *choice);
void packer_free(struct packer *p);

/* Compress @size bytes at @data (IMAGE_PACK_BLOCKS blocks at most) into @room bytes at @out.
 * Returns how many it took; 0 when there is too little room for them. */
size_t packer_pack(struct packer *p, const void *data, size_t size, void *out, size_t room);

/* Decompress the @used bytes at @packed, which are untrusted, into exactly @size bytes at
 * @data. 0, or -1 when they are not that. */
int pack_unpack(enum image_pack_method method, const void *packed, size_t used, void *data,
	size_t size);

#endif
