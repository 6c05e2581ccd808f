/*
 * image_writer.h - the inside of an image writer, shared by image_write.c (collecting) and
 * image_finish.c (the metadata and the header, at close).
 */
#ifndef CKPT_IMAGE_WRITER_H
#define CKPT_IMAGE_WRITER_H

#include <pthread.h>

#include "ckpt/image_load.h"
#include "ckpt/image_write.h"
#include "ckpt/string_table.h"

struct image_writer {
	int fd;
	char *what; /* for messages */
	enum image_file_kind kind;
	uint8_t checkpoint_id[16];
	uint64_t incompat;
	struct string_table strings;
	struct buf notes[IMAGE_NOTE_MAX]; /* contents, by type */
	struct buf core_notes;            /* encoded */
	struct buf ranges;                /* struct image_range */

	uint64_t data_end;    /* where the next blocks go; atomic */
	pthread_mutex_t lock; /* of what follows */
	struct buf extents;   /* struct image_extent, in the order of recording */
	struct buf hashes;
	struct buf packs; /* struct image_pack */
};

/* Append an ELF note to @out. */
void image_writer_encode_note(
	struct buf *out, const char *owner, uint32_t type, const void *data, size_t size);

#endif
