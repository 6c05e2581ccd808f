/*
 * image_hashes.c - the hashes of blocks. They are read piece by piece when they are asked for, out of the file
 * itself or another one (IMAGE_NOTE_HASH_TABLES): an incremental checkpoint of a program that has changed little
 * needs few of its parent's.
 */
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "ckpt/hash.h"
#include "ckpt/image_memory.h"
#include "ckpt/image_read_private.h"
#include "lib/util.h"

#define LOCKS 16u

struct image_table {
	const struct image *source; /* NULL: it is not open */
	uint64_t offset, count;     /* there */
	const uint64_t *sums;       /* of the pieces; NULL: all are here */
	uint8_t *hashes;            /* of the first one, the image's own, in its metadata */
	uint8_t *is_here;           /* of each piece; atomic */
	/* Of the pieces whose numbers leave the index as a remainder: threads that compare memory ask for different
	 * ones. */
	pthread_mutex_t locks[LOCKS];
};

static const struct image_hash_table *tables_of(const struct image *img, size_t *count)
{
	return image_note_array(img, IMAGE_NOTE_HASH_TABLES, struct image_hash_table, count);
}

/* That the whole of it lies in the file was checked when it was opened. */
static int read_piece(const struct image_table *t, uint64_t piece, struct err *e)
{
	uint64_t first = piece * IMAGE_HASH_PIECE, left = t->count - first;
	uint64_t offset = t->offset + first * IMAGE_HASH_SIZE;
	size_t size = (left < IMAGE_HASH_PIECE ? left : IMAGE_HASH_PIECE) * IMAGE_HASH_SIZE;
	uint8_t *to = t->hashes + first * IMAGE_HASH_SIZE;

	if (pread_all(t->source->fd, to, size, offset, t->source->path, e) < 0)
		return -1;
	if (hash64(to, size) != t->sums[piece])
		return image_bad(t->source, e,
			"its metadata is damaged (checksum of hashes near offset %" PRIu64 ")",
			offset);
	__atomic_store_n(&t->is_here[piece], 1, __ATOMIC_RELEASE);
	return 0;
}

static int need_piece(struct image_table *t, uint64_t piece, struct err *e)
{
	int failed = 0;

	if (__atomic_load_n(&t->is_here[piece], __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&t->locks[piece % LOCKS]);
	if (!__atomic_load_n(&t->is_here[piece], __ATOMIC_RELAXED))
		failed = read_piece(t, piece, e);
	pthread_mutex_unlock(&t->locks[piece % LOCKS]);
	return failed;
}

const uint8_t *image_hashes_of(
	const struct image *img, uint32_t table, uint64_t first, uint64_t count, struct err *e)
{
	struct image_table *t = &img->tables[table];

	BUG_ON(!count);
	if (!t->source) {
		image_bad(img, e, "the file that holds hashes of its blocks is not open");
		return NULL;
	}
	for (uint64_t piece = first / IMAGE_HASH_PIECE;
		t->sums && piece <= (first + count - 1) / IMAGE_HASH_PIECE; piece++)
		if (need_piece(t, piece, e))
			return NULL;
	return t->hashes + first * IMAGE_HASH_SIZE;
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
	if (img->hash_count && !image_hashes_of(img, 0, 0, img->hash_count, e))
		return -1;
	for (size_t i = 0; i < img->extent_count; i++) {
		const struct image_extent *x = &img->extents[i];

		if (image_extent_is_stored(x) && !image_hashes(img, x, 0, x->blocks, e))
			return -1;
	}
	return 0;
}

const uint64_t *image_own_sums(const struct image *img)
{
	return img->tables[0].sums;
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

/* Get ready to read. */
static int init_table(struct image_table *t, struct err *e)
{
	/* Not xcalloc(): the size comes from the file. */
	t->is_here = calloc(image_hash_pieces(t->count) + 1, 1);
	if (!t->is_here)
		return image_bad(
			t->source, e, "no memory for its %" PRIu64 " hashes", t->count);
	for (unsigned i = 0; i < LOCKS; i++)
		pthread_mutex_init(&t->locks[i], NULL);
	return 0;
}

/* The image's own. */
static int init_own(struct image *img, struct err *e)
{
	struct image_table *t = &img->tables[0];
	const uint64_t *sums;
	size_t count;

	*t = (struct image_table){.source = img,
		.offset = image_hashes_offset(img),
		.count = img->hash_count,
		.hashes = (uint8_t *)img->hashes};
	if (!img->unread_size)
		return 0;
	sums = image_note_array(img, IMAGE_NOTE_OWN_SUMS, uint64_t, &count);
	if (count != image_hash_pieces(t->count))
		return image_bad(img, e, "it has %zu checksums of hashes", count);
	t->sums = sums;
	return init_table(t, e);
}

int image_check_tables(struct image *img, struct err *e)
{
	const struct image_hash_table *t = tables_of(img, &img->table_count);

	if (img->table_count && !(img->super.incompat & IMAGE_INCOMPAT_TABLES))
		return image_bad(img, e, "it may not have hashes in other files");
	for (size_t i = 0; i < img->table_count; i++)
		if (check_table(img, &t[i], e))
			return -1;
	img->tables = xcalloc(img->table_count + 1, sizeof(*img->tables));
	return init_own(img, e);
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
	struct image_table *in = &img->tables[table];

	if (in->source)
		return 0;
	/* That the sum does not overflow was checked when @img was opened. */
	if (t->offset + t->count * IMAGE_HASH_SIZE > source->super.file_size)
		return image_bad(img, e, "it has hashes outside of %s", source->path);
	in->offset = t->offset;
	in->count = t->count;
	in->sums = (const uint64_t *)img->notes[IMAGE_NOTE_HASH_SUMS].data + t->first_sum;
	in->source = source;
	in->hashes = image_memory_get(t->count * IMAGE_HASH_SIZE + 1);
	if (!in->hashes)
		return image_bad(img, e, "no memory for %" PRIu64 " hashes", t->count);
	return init_table(in, e);
}

void image_free_tables(struct image *img)
{
	for (size_t i = 0; img->tables && i <= img->table_count; i++) {
		struct image_table *t = &img->tables[i];

		for (unsigned k = 0; t->is_here && k < LOCKS; k++)
			pthread_mutex_destroy(&t->locks[k]);
		free(t->is_here);
		if (i)
			image_memory_free(t->hashes);
	}
	free(img->tables);
}
