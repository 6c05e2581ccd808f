/*
 * image_hash_tables.c - where the hashes of blocks are that an image has in common with its parent: the
 * parent's own, and those of its tables. Which of them the image needs shows in the end.
 */
#include <string.h>

#include "ckpt/hash.h"
#include "ckpt/image_read.h"
#include "ckpt/image_write_private.h"

/* Hashes that extents may be about. */
struct known_table {
	struct image_hash_table table;
	const uint64_t *sums;  /* NULL, of an earlier release's image: they are made of */
	const uint8_t *hashes; /* these */
	uint32_t number;       /* in the note; 0: not in it */
};

void image_writer_parent(
	struct image_writer *w, const struct image *parent, const uint32_t *parent_source)
{
	struct known_table own = {
		.table = {.offset = image_hashes_offset(parent),
			.count = parent->hash_count,
			.source = parent_source[0]},
		.sums = image_own_sums(parent),
		.hashes = parent->hashes,
	};
	const struct image_hash_table *t;
	const uint64_t *sums;
	size_t count;

	BUG_ON(w->parent && w->parent != parent);
	if (w->parent)
		return;
	w->parent = parent;
	buf_push(&w->tables, struct known_table, &own);
	t = image_note_array(parent, IMAGE_NOTE_HASH_TABLES, struct image_hash_table, &count);
	sums = image_note_array(parent, IMAGE_NOTE_HASH_SUMS, uint64_t, &(size_t){0});
	for (size_t i = 0; i < count; i++) {
		struct known_table known = {.table = t[i], .sums = sums + t[i].first_sum};

		known.table.source = parent_source[t[i].source];
		buf_push(&w->tables, struct known_table, &known);
	}
}

int image_writer_check_tables(const struct image_writer *w, struct err *e)
{
	for (size_t i = 0; i < buf_count(&w->extents, struct image_extent); i++) {
		const struct image_extent *x = buf_at(&w->extents, struct image_extent, i);

		if (x->hash_table && !image_hashes_of(w->parent, x->hash_table - 1,
					     x->first_hash, x->blocks, e))
			return -1;
	}
	return 0;
}

void image_hash_sums(const uint8_t *hashes, uint64_t count, struct buf *sums)
{
	for (uint64_t at = 0; at < count; at += IMAGE_HASH_PIECE) {
		uint64_t left = count - at;
		uint64_t sum = hash64(hashes + at * IMAGE_HASH_SIZE,
			(left < IMAGE_HASH_PIECE ? left : IMAGE_HASH_PIECE) * IMAGE_HASH_SIZE);

		buf_push(sums, uint64_t, &sum);
	}
}

static void add_sums(struct image_writer *w, const struct known_table *known)
{
	struct buf *sums = &w->notes[IMAGE_NOTE_HASH_SUMS];

	if (known->sums)
		buf_add(sums, known->sums,
			image_hash_pieces(known->table.count) * sizeof(*known->sums));
	else
		image_hash_sums(known->hashes, known->table.count, sums);
}

static uint32_t number_table(struct image_writer *w, struct known_table *known)
{
	struct buf *tables = &w->notes[IMAGE_NOTE_HASH_TABLES];

	if (known->number)
		return known->number;
	known->table.first_sum = buf_count(&w->notes[IMAGE_NOTE_HASH_SUMS], uint64_t);
	add_sums(w, known);
	buf_push(tables, struct image_hash_table, &known->table);
	known->number = buf_count(tables, struct image_hash_table);
	return known->number;
}

void image_writer_place_tables(struct image_writer *w)
{
	for (size_t i = 0; i < buf_count(&w->extents, struct image_extent); i++) {
		struct image_extent *x = buf_at(&w->extents, struct image_extent, i);

		if (!x->hash_table)
			continue;
		BUG_ON(x->hash_table > buf_count(&w->tables, struct known_table));
		x->hash_table = number_table(
			w, buf_at(&w->tables, struct known_table, x->hash_table - 1));
		w->incompat |= IMAGE_INCOMPAT_TABLES;
	}
}
