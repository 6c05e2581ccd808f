/*
 * image_write.c - what is added to a file while it is written; image_finish.c writes the
 * metadata behind it.
 */
#include "ckpt/image_write.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/image_write_private.h"

struct image_writer *image_writer_open(int dirfd, const char *name, enum image_file_kind kind,
	const uint8_t checkpoint_id[16], const char *what, struct err *e)
{
	int fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct image_writer *w;

	if (fd < 0) {
		err_set(e, errno, "cannot create %s", what);
		return NULL;
	}
	w = xcalloc(1, sizeof(*w));
	w->files[0] = (struct image_blocks_file){
		.fd = fd, .what = xstrdup(what), .end = IMAGE_HEAD_SIZE};
	w->file_count = w->files_most = 1;
	w->dirfd = -1;
	w->kind = kind;
	memcpy(w->checkpoint_id, checkpoint_id, sizeof(w->checkpoint_id));
	pthread_mutex_init(&w->lock, NULL);
	string_table_add(&w->strings, "");
	return w;
}

uint32_t image_writer_string(struct image_writer *w, const char *s)
{
	return string_table_add(&w->strings, s);
}

void image_writer_note(
	struct image_writer *w, enum image_note type, const void *data, size_t size)
{
	BUG_ON(type <= IMAGE_NOTE_STRINGS || type >= IMAGE_NOTE_MAX);
	buf_add(&w->notes[type], data, size);
}

void image_writer_incompat(struct image_writer *w, uint64_t bits)
{
	w->incompat |= bits;
}

void image_writer_maker(struct image_writer *w, const char *version, const char *folder)
{
	struct image_maker *m = &w->maker;

	/* A folder that is cut off would be another one. */
	snprintf(m->version, sizeof(m->version), "%s", version);
	if (strlen(folder) < sizeof(m->folder))
		snprintf(m->folder, sizeof(m->folder), "%s", folder);
}

void image_writer_core_note(
	struct image_writer *w, const char *owner, uint32_t type, const void *data, size_t size)
{
	image_writer_encode_note(&w->core_notes, owner, type, data, size);
}

void image_writer_range(
	struct image_writer *w, uint64_t start, uint64_t end, uint32_t flags, bool zero)
{
	struct image_range range = {.start = start, .end = end, .flags = flags, .zero = zero};

	buf_push(&w->ranges, struct image_range, &range);
}

/* Record an extent and, when they belong into this file, its hashes. Under the lock. */
static void add_extent(struct image_writer *w, struct image_extent x, const uint8_t *hashes)
{
	if (hashes) {
		x.first_hash = w->hashes.len / IMAGE_HASH_SIZE;
		buf_add(&w->hashes, hashes, (size_t)x.blocks * IMAGE_HASH_SIZE);
	}
	if (image_extent_is_stored(&x))
		w->hashed += x.blocks;
	buf_push(&w->extents, struct image_extent, &x);
}

static void record_extent(struct image_writer *w, struct image_extent x, const uint8_t *hashes)
{
	pthread_mutex_lock(&w->lock);
	add_extent(w, x, hashes);
	pthread_mutex_unlock(&w->lock);
}

/* The same of blocks of @pack. */
static void record_packed(struct image_writer *w, struct image_extent x,
	const struct image_pack *pack, const uint8_t *hashes)
{
	x.kind = IMAGE_EXTENT_PACKED;
	pthread_mutex_lock(&w->lock);
	x.file_offset = buf_count(&w->packs, struct image_pack);
	buf_push(&w->packs, struct image_pack, pack);
	add_extent(w, x, hashes);
	pthread_mutex_unlock(&w->lock);
}

/* Rows that are in the file @source, one behind the other from @offset on, as they are. */
static void record_rows(struct image_writer *w, uint32_t object, const struct block_row *rows,
	size_t count, uint32_t source, uint64_t offset)
{
	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < count; i++) {
		struct image_extent x = {
			.address = rows[i].address,
			.file_offset = offset,
			.blocks = rows[i].blocks,
			.object = object,
			.kind = IMAGE_EXTENT_DATA,
			.source = source,
		};

		add_extent(w, x, rows[i].hashes);
		offset += (uint64_t)rows[i].blocks * IMAGE_BLOCK;
	}
	pthread_mutex_unlock(&w->lock);
}

/* The bytes of all rows: those that are one behind the other in memory, too, are one piece. Returns how many there
 * are. */
static int find_pieces(
	const struct block_row *rows, size_t count, struct iovec *pieces, size_t *size)
{
	int n = 0;

	*size = 0;
	for (size_t i = 0; i < count; i++) {
		struct iovec row = {(void *)rows[i].data, (size_t)rows[i].blocks * IMAGE_BLOCK};

		*size += row.iov_len;
		if (n && (char *)pieces[n - 1].iov_base + pieces[n - 1].iov_len == row.iov_base)
			pieces[n - 1].iov_len += row.iov_len;
		else
			pieces[n++] = row;
	}
	return n;
}

int image_writer_rows(struct image_writer *w, uint32_t object, const struct block_row *rows,
	size_t count, struct err *e)
{
	struct iovec pieces[IMAGE_ROWS_MOST];
	uint64_t offset;
	uint32_t source;
	size_t size;
	int n;

	BUG_ON(count > IMAGE_ROWS_MOST);
	n = find_pieces(rows, count, pieces, &size);
	if (image_writer_blocks(w, pieces, n, size, &source, &offset, e) < 0)
		return -1;
	record_rows(w, object, rows, count, source, offset);
	return 0;
}

int image_writer_data(struct image_writer *w, uint32_t object, uint64_t address,
	const void *data, uint32_t blocks, const uint8_t *hashes, struct err *e)
{
	struct block_row row = {address, data, hashes, blocks};

	return image_writer_rows(w, object, &row, 1, e);
}

int image_writer_file_data(struct image_writer *w, uint32_t object, uint64_t address, int from,
	uint8_t *data, uint32_t blocks, uint8_t (*hashes)[IMAGE_HASH_SIZE], struct err *e)
{
	uint64_t offset;
	uint32_t source;

	if (image_writer_shared_blocks(w, from, address, data, (size_t)blocks * IMAGE_BLOCK,
		    hashes, &source, &offset, e) < 0)
		return -1;
	record_rows(w, object,
		&(struct block_row){.address = address, .hashes = hashes[0], .blocks = blocks},
		1, source, offset);
	return 0;
}

int image_writer_packs(struct image_writer *w, uint32_t object, const void *data, size_t size,
	const struct packed_run *runs, size_t count, struct err *e)
{
	struct iovec piece = {(void *)data, size};
	uint64_t offset;
	uint32_t source;

	if (image_writer_blocks(w, &piece, 1, size, &source, &offset, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		struct image_pack pack = runs[i].pack;

		pack.file_offset += offset;
		record_packed(w,
			(struct image_extent){
				.address = runs[i].address,
				.blocks = pack.blocks,
				.object = object,
				.source = source,
			},
			&pack, runs[i].hashes);
	}
	return 0;
}

void image_writer_reference(struct image_writer *w, uint32_t object, uint64_t address,
	const struct block_place *place, uint32_t blocks, const uint8_t *hashes)
{
	struct image_extent x = {
		.address = address,
		.file_offset = place->offset,
		.first_hash = place->first_hash,
		.hash_table = place->table,
		.blocks = blocks,
		.object = object,
		.kind = IMAGE_EXTENT_DATA,
		.source = place->source,
	};

	BUG_ON(!place->source || !place->table != !!hashes);
	if (!place->pack) {
		record_extent(w, x, hashes);
		return;
	}
	BUG_ON(place->skip + blocks > place->pack->blocks);
	x.skip = place->skip;
	record_packed(w, x, place->pack, hashes);
}

void image_writer_zero(
	struct image_writer *w, uint32_t object, uint64_t address, uint32_t blocks)
{
	record_extent(w,
		(struct image_extent){
			.address = address,
			.blocks = blocks,
			.object = object,
			.kind = IMAGE_EXTENT_ZERO,
		},
		NULL);
}

void image_writer_recorded(const struct image_writer *w, size_t *extents, size_t *hashes)
{
	*extents = buf_count(&w->extents, struct image_extent);
	*hashes = w->hashed * IMAGE_HASH_SIZE;
}

uint64_t image_writer_stored(const struct image_writer *w)
{
	return __atomic_load_n(&w->stored, __ATOMIC_RELAXED);
}

void image_writer_abort(struct image_writer *w)
{
	if (!w)
		return;
	for (unsigned i = 0; i < w->file_count; i++) {
		close(w->files[i].fd);
		free(w->files[i].what);
	}
	free(w->name);
	for (int i = 0; i < IMAGE_NOTE_MAX; i++)
		buf_free(&w->notes[i]);
	string_table_free(&w->strings);
	buf_free(&w->core_notes);
	buf_free(&w->extents);
	buf_free(&w->hashes);
	buf_free(&w->packs);
	buf_free(&w->tables);
	buf_free(&w->ranges);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
