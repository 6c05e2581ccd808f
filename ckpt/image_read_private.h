/*
 * image_read_private.h - the inside of reading an image: image_read.c (opening, blocks), image_meta.c
 * (the metadata's parts and what must hold for them), image_chain.c (other checkpoints' files).
 */
#ifndef CKPT_IMAGE_READ_PRIVATE_H
#define CKPT_IMAGE_READ_PRIVATE_H

#include "ckpt/image_read.h"

/* Read and check the ELF header and the super block of img->fd into @head (IMAGE_HEAD_SIZE
 * bytes) and img->super. Behind this, all offsets in the super block are within the file. */
int image_read_head(struct image *img, enum image_file_kind kind, uint8_t *head, struct err *e);

/* Read the metadata and find its parts. */
int image_read_meta(struct image *img, const uint8_t *head, struct err *e);

/* "cannot read image PATH: ..." */
#define image_bad(img, e, ...) image_bad_at((img)->path, (e), __VA_ARGS__)
int image_bad_at(const char *path, struct err *e, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
