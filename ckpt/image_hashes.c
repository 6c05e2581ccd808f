/*
 * image_hashes.c - the hashes of blocks. Those of this file are in its metadata, which has been read whole. Those
 * of a table (IMAGE_NOTE_HASH_TABLES) are read out of another file piece by piece when they are asked for: an
 * incremental checkpoint of a program that has changed little needs few of its parent's.
 */
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "ckpt/hash.h"
#include "ckpt/image_read_private.h"
#include "lib/util.h"

#define LOCKS 16u

struct image_table {
	uint8_t *hashes; /* NULL: the file is not open. What is here of them: */
	uint8_t *is_here; /* of each piece; atomic */
	/* Of the pieces whose numbers leave the index as a remainder: threads that compare memory ask for different
	 * ones. */
	pthread_mutex_t locks[LOCKS];
};

static const struct image_hash_table *tables_of(const struct image *img, size_t *count)
{
	return image_note_array(
		img, IMAGE_NOTE_HASH_TABLES, struct image_hash_table, count);
}

/* That the whole of it lies in the file was checked when it was opened. */
static int read_piece(const struct image *img, uint32_t table, uint64_t piece, struct err *e)
{
	const struct image_hash_table *t = &tables_of(img, &(size_t){0})[table];
	const struct image *source = &img->sources[t->source];
	uint64_t first = piece * IMAGE_HASH_PIECE, sum;
	uint64_t left = t->count - first;
	size_t size = (left < IMAGE_HASH_PIECE ? left : IMAGE_HASH_PIECE) * IMAGE_HASH_SIZE;
	uint8_t *to = img->tables[table].hashes + first * IMAGE_HASH_SIZE;
	const uint64_t *sums;
	size_t count;

	sums = image_note_array(img, IMAGE_NOTE_HASH_SUMS, uint64_t, &count);
	sum = sums[t->first_sum + piece];
	if (pread_all(source->fd, to, size, t->offset + first * IMAGE_HASH_SIZE, source->path,
		    e) < 0)
		return -1;
	if (hash64(to, size) != sum)
		return image_bad(source, e,
			"its metadata is damaged (checksum of hashes near offset %" PRIu64 ")",
			t->offset + first * IMAGE_HASH_SIZE);
	__atomic_store_n(&img->tables[table].is_here[piece], 1, __ATOMIC_RELEASE);
	return 0;
}

static int need_piece(const struct image *img, uint32_t table, uint64_t piece, struct err *e)
{
	struct image_table *t = &img->tables[table];
	int failed = 0;

	if (__atomic_load_n(&t->is_here[piece], __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&t->locks[piece % LOCKS]);
	if (!__atomic_load_n(&t->is_here[piece], __ATOMIC_RELAXED))
		failed = read_piece(img, table, piece, e);
	pthread_mutex_unlock(&t->locks[piece % LOCKS]);
	return failed;
}

const uint8_t *image_hashes_of(const struct image *img, uint32_t table, uint64_t first,
	uint64_t count, struct err *e)
{
	BUG_ON(!count);
	if (!table--)
		return img->hashes + first * IMAGE_HASH_SIZE;
	if (!img->tables[table].hashes) {
		image_bad(img, e, "the file that holds hashes of its blocks is not open");
		return NULL;
	}
	for (uint64_t piece = first / IMAGE_HASH_PIECE;
		piece <= (first + count - 1) / IMAGE_HASH_PIECE; piece++)
		if (need_piece(img, table, piece, e))
			return NULL;
	return img->tables[table].hashes + first * IMAGE_HASH_SIZE;
}

const uint8_t *image_hashes(const struct image *img, const struct image_extent *x,
	uint32_t first, uint32_t count, struct err *e)
{
	BUG_ON(!image_extent_is_stored(x) || first > x->blocks || count > x->blocks - first);
	return image_hashes_of(img, x->hash_table, (uint64_t)x->first_hash + first, count, e);
}

const uint8_t *image_hash(const struct image *img, const struct image_extent *x, uint32_t block)
{
	return image_hashes(img, x, block, 1, NULL);
}

int image_need_hashes(const struct image *img, struct err *e)
{
	for (size_t i = 0; i < img->extent_count; i++) {
		const struct image_extent *x = &img->extents[i];

		if (image_extent_is_stored(x) && x->hash_table &&
			!image_hashes(img, x, 0, x->blocks, e))
			return -1;
	}
	return 0;
}

static int check_table(const struct image *img, const struct image_hash_table *t, struct err *e)
{
	uint64_t size, end, pieces = image_hash_pieces(t->count);
	size_t chain, sums;

	image_note_array(img, IMAGE_NOTE_CHAIN, struct image_chain, &chain);
	image_note_array(img, IMAGE_NOTE_HASH_SUMS, uint64_t, &sums);
	if (!t->source || t->source >= chain)
		return image_bad(img, e, "it has hashes in no known file");
	if (t->first_sum > sums || pieces > sums - t->first_sum)
		return image_bad(img, e, "it has hashes without checksums");
	if (__builtin_mul_overflow(t->count, IMAGE_HASH_SIZE, &size) ||
		__builtin_add_overflow(t->offset, size, &end))
		return image_bad(img, e, "it has hashes that are out of place");
	return 0;
}

int image_check_tables(struct image *img, struct err *e)
{
	const struct image_hash_table *t = tables_of(img, &img->table_count);

	if (img->table_count && !(img->super.incompat & IMAGE_INCOMPAT_TABLES))
		return image_bad(img, e, "it may not have hashes in other files");
	for (size_t i = 0; i < img->table_count; i++)
		if (check_table(img, &t[i], e))
			return -1;
	img->tables = xcalloc(img->table_count, sizeof(*img->tables));
	return 0;
}

int image_check_hashes(const struct image *img, const struct image_extent *x, struct err *e)
{
	uint64_t count = img->hash_count;

	if (x->hash_table) {
		if (!x->source || x->hash_table > img->table_count)
			return image_bad(img, e,
				"the extent at %#" PRIx64 " has its hashes in no known file",
				x->address);
		count = tables_of(img, &(size_t){0})[x->hash_table - 1].count;
	}
	if (x->first_hash > count || x->blocks > count - x->first_hash)
		return image_bad(
			img, e, "the extent at %#" PRIx64 " has no hashes", x->address);
	return 0;
}

uint32_t image_table_source(const struct image *img, uint32_t table)
{
	BUG_ON(!table || table > img->table_count);
	return tables_of(img, &(size_t){0})[table - 1].source;
}

int image_open_table(struct image *img, uint32_t table, struct err *e)
{
	const struct image_hash_table *t = &tables_of(img, &(size_t){0})[table - 1];
	const struct image *source = &img->sources[t->source];
	struct image_table *in = &img->tables[table - 1];

	if (in->hashes)
		return 0;
	/* That the sum does not overflow was checked when @img was opened. */
	if (t->offset + t->count * IMAGE_HASH_SIZE > source->super.file_size)
		return image_bad(img, e, "it has hashes outside of %s", source->path);
	/* Not xmalloc(): the size comes from the file. */
	in->hashes = malloc(t->count * IMAGE_HASH_SIZE + 1);
	in->is_here = calloc(image_hash_pieces(t->count) + 1, 1);
	if (!in->hashes || !in->is_here) {
		free(in->hashes);
		free(in->is_here);
		in->hashes = in->is_here = NULL;
		return image_bad(img, e, "no memory for %" PRIu64 " hashes", t->count);
	}
	for (unsigned i = 0; i < LOCKS; i++)
		pthread_mutex_init(&in->locks[i], NULL);
	return 0;
}

void image_free_tables(struct image *img)
{
	for (size_t i = 0; img->tables && i < img->table_count; i++) {
		struct image_table *t = &img->tables[i];

		for (unsigned k = 0; t->hashes && k < LOCKS; k++)
			pthread_mutex_destroy(&t->locks[k]);
		free(t->hashes);
		free(t->is_here);
	}
	free(img->tables);
}
