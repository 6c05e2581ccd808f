/*
 * image_read_private.h - the inside of reading an image: image_read.c (opening, blocks), image_meta.c
 * (the metadata's parts and what must hold for them), image_chain.c (other checkpoints' files), image_hashes.c
 * (hashes, here and there).
 */
#ifndef CKPT_IMAGE_READ_PRIVATE_H
#define CKPT_IMAGE_READ_PRIVATE_H

#include "ckpt/image_read.h"

/* Read and check the ELF header and the super block of img->fd into @head (IMAGE_HEAD_SIZE
 * bytes) and img->super. Behind this, all offsets in the super block are within the file. */
int image_read_head(struct image *img, enum image_file_kind kind, uint8_t *head, struct err *e);

/* Read the metadata and find its parts. */
int image_read_meta(struct image *img, const uint8_t *head, struct err *e);

/* Check the notes about hashes in other files; then those of one extent. */
int image_check_tables(struct image *img, struct err *e);
int image_check_hashes(const struct image *img, const struct image_extent *x, struct err *e);
/* In which file (index in the chain) the hashes of @table, from 1, are. */
uint32_t image_table_source(const struct image *img, uint32_t table);
/* That file is open now: be ready to read hashes of it. */
int image_open_table(struct image *img, uint32_t table, struct err *e);
void image_free_tables(struct image *img);

/* "cannot read image PATH: ..." */
#define image_bad(img, e, ...) image_bad_at((img)->path, (e), __VA_ARGS__)
int image_bad_at(const char *path, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
