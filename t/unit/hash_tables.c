/* In a chain of checkpoints each hash is stored once, in the file of the checkpoint that stored its block: random
 * chains give back their memory and the hashes of all blocks, also behind an image of an earlier release, which has all
 * hashes in itself; a hash that is damaged is found when it is needed, and needed only then. */
#include <stdlib.h>

#include "ckpt/blocks.h"
#include "ckpt/hash.h"
#include "lib/util.h"
#include "t/unit/tap.h"
#include "t/unit/scratch.h"

#define BASE   0x7f0000080000ull /* in the middle of a chunk */
#define BLOCKS (2 * IMAGE_HASH_PIECE + 700)
#define LENGTH 6u /* checkpoints of a chain */

static uint8_t (*memory)[IMAGE_BLOCK];
static bool changed[BLOCKS]; /* since the last checkpoint */
static char names[LENGTH][16];
static bool checked; /* the last image refers to hashes that are all whole */

static int read_memory(void *context, uint64_t address, void *data, size_t size, struct err *e)
{
	memcpy(data, memory[(address - BASE) / IMAGE_BLOCK], size);
	return 0;
}

static int hash_memory(void *context, uint64_t address, size_t count,
	uint8_t (*out)[IMAGE_HASH_SIZE], struct err *e)
{
	for (size_t i = 0; i < count; i++)
		hash128(memory[(address - BASE) / IMAGE_BLOCK + i], IMAGE_BLOCK, out[i]);
	return 0;
}

static void expect_nothing(void *context, uint64_t address, uint64_t size)
{
}

static void fill(uint32_t block, uint64_t value)
{
	uint64_t *words = (uint64_t *)memory[block];

	/* Half of it can be compressed. */
	for (size_t i = 0; i < IMAGE_BLOCK / 8; i++)
		words[i] = i % 2 ? 0 : (value * IMAGE_BLOCK + i + 1) * 0x9e3779b97f4a7c15ull;
	changed[block] = true;
}

static int open_dir(unsigned n)
{
	snprintf(names[n], sizeof(names[n]), "ckpt-%06u", n);
	(void)mkdirat(scratch_fd, names[n], 0700); /* there already in the next chain */
	return openat(scratch_fd, names[n], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void id_of(unsigned n, uint8_t id[16])
{
	memset(id, 0, 16);
	id[0] = n + 1;
}

/* Checkpoint @n, all of whose predecessors may have blocks of it. */
static struct image_writer *start(unsigned n)
{
	cleanup_fd int dir = open_dir(n);
	struct image_writer *w;
	uint8_t id[16];

	unlinkat(dir, "1", 0);
	id_of(n, id);
	w = image_writer_open(dir, "1", IMAGE_FILE_PROCESS, id, names[n], NULL);
	for (unsigned i = 0; i <= n; i++) {
		struct image_chain link = {.name = image_writer_string(w, names[n - i])};

		id_of(n - i, link.checkpoint_id);
		image_writer_chain(w, &link, NULL);
	}
	return w;
}

static struct image *open_number(unsigned n)
{
	cleanup_fd int dir = open_dir(n);
	struct err e = ERR_INIT;
	struct image *img = image_open(dir, "1", names[n], IMAGE_FILE_PROCESS, &e);

	if (!img || image_open_chain(img, dir, scratch_fd, "1", &e)) {
		ok(false, "%s opens: %s", names[n], e.msg);
		exit(1);
	}
	return img;
}

static struct image *finish(struct image_writer *w, unsigned n)
{
	struct err e = ERR_INIT;

	if (image_writer_close(w, false, &e)) {
		ok(false, "%s is written: %s", names[n], e.msg);
		exit(1);
	}
	return open_number(n);
}

static const uint32_t sources[] = {1, 2, 3, 4, 5, 6};

/* How blocks that have not changed are found. */
enum way { BY_READING, BY_HASHES, BY_KNOWING, WAYS };

/* Runs that are known to be as they were, and others. */
static size_t cut_runs(struct block_run *runs, enum way way, const struct image *parent)
{
	size_t count = 0;
	uint32_t end;

	for (uint32_t i = 0; i < BLOCKS; i = end) {
		bool clean = way == BY_KNOWING && parent && !changed[i];

		for (end = i + 1; end < BLOCKS; end++)
			if (way == BY_KNOWING && changed[end] != changed[i])
				break;
		runs[count++] = (struct block_run){.address = BASE + (uint64_t)i * IMAGE_BLOCK,
			.size = (uint64_t)(end - i) * IMAGE_BLOCK,
			.clean = clean,
			.read = read_memory,
			.hash = way == BY_HASHES ? hash_memory : NULL,
			.expect = expect_nothing};
	}
	return count;
}

/* As one of several files that come one after the other, or by itself. */
static int write_blocks(const struct blocks_to_write *to_write, bool as_stream, struct err *e)
{
	struct blocks_stream *stream;

	if (!as_stream)
		return blocks_write(to_write, e);
	stream = blocks_stream_begin(1);
	blocks_stream_add(stream, to_write);
	return blocks_stream_end(stream, false, e);
}

static struct image *save(unsigned n, const struct image *parent, enum way way,
	const char *method, unsigned threads)
{
	cleanup_free struct block_run *runs = xcalloc(BLOCKS, sizeof(*runs));
	struct blocks_to_write to_write = {.runs = runs,
		.run_count = cut_runs(runs, way, parent),
		.writer = start(n),
		.parent = parent,
		.parent_source = sources,
		.threads = threads};
	struct err e = ERR_INIT;

	/* No stream takes runs that have hashes. */
	if (pack_choice_parse(&to_write.pack, method, &e) ||
		write_blocks(&to_write, way != BY_HASHES && n % 2, &e)) {
		ok(false, "%s: %s", names[n], e.msg);
		exit(1);
	}
	checked = !image_writer_check_tables(to_write.writer, NULL);
	memset(changed, 0, sizeof(changed));
	return finish(to_write.writer, n);
}

/* The same as earlier releases wrote it, where nothing has changed: all hashes are in the new file. */
static struct image *save_as_before(unsigned n, const struct image *parent)
{
	struct image_writer *w = start(n);

	for (size_t i = 0; i < parent->extent_count; i++) {
		const struct image_extent *x = &parent->extents[i];
		const struct block_place place = {
			.source = sources[x->source],
			.offset = x->file_offset,
			.pack = image_pack_of(parent, x),
			.skip = x->skip,
		};

		if (image_extent_is_stored(x))
			image_writer_reference(w, 0, x->address, &place, x->blocks,
				image_hashes(parent, x, 0, x->blocks, NULL));
	}
	return finish(w, n);
}

/* ---- what an image must be ---- */

static bool is_right(const struct image *img)
{
	uint8_t block[IMAGE_BLOCK], hash[IMAGE_HASH_SIZE];

	for (uint32_t i = 0; i < BLOCKS; i++) {
		uint64_t address = BASE + (uint64_t)i * IMAGE_BLOCK;
		const struct image_extent *x = image_find(img, 0, address);
		uint32_t nth = x ? (address - x->address) / IMAGE_BLOCK : 0;
		const uint8_t *has;

		if (!x) {
			if (!is_zero(memory[i], IMAGE_BLOCK))
				return false;
			continue;
		}
		hash128(memory[i], IMAGE_BLOCK, hash);
		has = image_hash(img, x, nth);
		if (!has || memcmp(has, hash, sizeof(hash)) ||
			image_read_blocks(img, x, nth, 1, block, NULL) ||
			memcmp(block, memory[i], IMAGE_BLOCK))
			return false;
	}
	return true;
}

/* Its own hashes are those of what it stores, and it names no tables that it does not need. */
static bool is_small(const struct image *img)
{
	size_t own = 0, tables = 0, sums, pieces = 0;
	bool used[2 * LENGTH] = {0};
	const struct image_hash_table *t;

	t = image_note_array(img, IMAGE_NOTE_HASH_TABLES, struct image_hash_table, &tables);
	image_note_array(img, IMAGE_NOTE_HASH_SUMS, uint64_t, &sums);
	for (size_t i = 0; i < img->extent_count; i++) {
		const struct image_extent *x = &img->extents[i];

		if (!x->source != !x->hash_table)
			return false;
		if (x->hash_table)
			used[x->hash_table - 1] = true;
		else
			own += x->blocks;
	}
	for (size_t i = 0; i < tables; i++) {
		if (!used[i])
			return false;
		pieces += image_hash_pieces(t[i].count);
	}
	return own == img->hash_count && sums == pieces &&
	       !!tables == !!(img->super.incompat & IMAGE_INCOMPAT_TABLES);
}

/* ---- random chains ---- */

static void change(unsigned step)
{
	unsigned times = rand() % 4 ? rand() % 300 : 0;

	while (times--) {
		uint32_t at = rand() % BLOCKS, n = 1 + (rand() % 8 ? rand() % 3 : rand() % 200);

		for (; n && at < BLOCKS; n--, at++) {
			if (rand() % 10)
				fill(at, rand() % 2 ? at : step * BLOCKS + at);
			else
				memset(memory[at], 0, IMAGE_BLOCK);
			changed[at] = true;
		}
	}
}

static void test_random(unsigned seed)
{
	static const char *const methods[] = {"none", "none", "lz4", "zstd:1"};
	struct image *img = NULL, *next;
	bool right = true, small = true;
	unsigned n;

	srand(seed);
	for (uint32_t i = 0; i < BLOCKS; i++)
		fill(i, i);
	for (n = 0; n < LENGTH && right && small; n++) {
		change(n);
		next = save(n, img, rand() % WAYS, methods[rand() % 4], 1 + rand() % 4);
		image_close(img);
		img = next;
		right = checked && is_right(img) && !image_check_all(img, NULL);
		small = is_small(img);
	}
	image_close(img);
	ok(right, "seed %u: all checkpoints are right (of %u)", seed, n);
	ok(small, "seed %u: with each hash in one place (of %u)", seed, n);
}

/* Make number @n what earlier releases wrote: without checksums of parts. */
static struct image *without_parts(struct image *img, unsigned n)
{
	cleanup_free char *path = xasprintf("%s/1", names[n]);
	cleanup_fd int fd = openat(scratch_fd, path, O_RDWR | O_CLOEXEC);
	uint8_t head[IMAGE_HEAD_SIZE];
	struct image_super super = img->super;

	image_close(img);
	super.compat &= ~(uint64_t)IMAGE_COMPAT_PARTS;
	super.head_hash = 0;
	pread_all(fd, head, sizeof(head), 0, path, NULL);
	memset(head + IMAGE_PARTS_OFFSET, 0, sizeof(struct image_parts));
	memcpy(head + IMAGE_SUPER_OFFSET, &super, sizeof(super));
	super.head_hash = hash64(head, sizeof(head));
	memcpy(head + IMAGE_SUPER_OFFSET, &super, sizeof(super));
	pwrite_all(fd, head, sizeof(head), 0, path, NULL);
	return open_number(n);
}

static void test_earlier_release(enum way way)
{
	struct image *first, *second, *third;

	for (uint32_t i = 0; i < BLOCKS; i++)
		fill(i, i);
	first = without_parts(save(0, NULL, BY_READING, way ? "none" : "lz4", 2), 0);
	ok(!first->unread_size && !image_own_sums(first) && is_right(first),
		"an image that is read whole");
	second = save(1, first, way, "none", 2);
	ok(!second->hash_count && second->table_count == 1 && is_right(second),
		"can be a parent");
	image_close(second);
	second = save_as_before(1, first);
	second = without_parts(second, 1);
	ok(second->hash_count == BLOCKS && !second->table_count && is_right(second),
		"an image with all hashes in itself");
	fill(3, 1);
	fill(BLOCKS - 1, 2);
	third = save(2, second, way, "none", 2);
	ok(third->hash_count == 2 && third->table_count == 1 && is_right(third),
		"can be a parent (%zu hashes)", third->hash_count);
	image_close(first);
	image_close(second);
	image_close(third);
}

/* ---- damage ---- */

static void flip(unsigned n, uint64_t offset)
{
	cleanup_free char *path = xasprintf("%s/1", names[n]);
	cleanup_fd int fd = openat(scratch_fd, path, O_RDWR | O_CLOEXEC);
	uint8_t byte;

	pread_all(fd, &byte, 1, offset, path, NULL);
	byte ^= 16;
	pwrite_all(fd, &byte, 1, offset, path, NULL);
}

static void test_damage(enum way way)
{
	struct image *first, *second, *third;
	uint64_t place;
	struct err e = ERR_INIT;
	uint8_t block[IMAGE_BLOCK];

	for (uint32_t i = 0; i < BLOCKS; i++)
		fill(i, i);
	first = save(0, NULL, BY_READING, "none", 1);
	place = image_hashes_offset(first) + (IMAGE_HASH_PIECE + 5) * IMAGE_HASH_SIZE;
	fill(7, 1);
	image_close(save(1, first, way, "none", 1));
	image_close(first);

	flip(0, place);
	second = open_number(1);
	ok(!image_read_blocks(second, image_find(second, 0, BASE), 0, 1, block, &e),
		"hashes in another part can be read %s", e.msg);
	ok(image_need_hashes(second, &e) < 0, "a damaged hash of the parent's is found");
	says(e.msg, "ckpt-000000/1: its metadata is damaged (checksum of hashes", "by name");
	ok(image_check_all(second, &e) < 0, "also when all is compared");

	fill(9, 1);
	third = save(2, second, BY_HASHES, "none", 3);
	/* With what is in a chunk with it. */
	ok(third->hash_count > IMAGE_HASH_PIECE &&
			third->hash_count <= IMAGE_HASH_PIECE + 512 && is_right(third),
		"what cannot be compared is stored (%zu)", third->hash_count);
	image_close(third);
	image_close(second);

	first = open_number(0);
	ok(image_need_hashes(first, &e) < 0, "its own damaged hash is found");
	says(e.msg, "ckpt-000000: its metadata is damaged (checksum of hashes", "by name");
	image_close(first);

	flip(0, place);
	second = open_number(1);
	ok(!image_need_hashes(second, &e), "it is whole again");
	image_close(second);
}

/* Blocks that are known to be as they were take no hashes: none is read. */
static void test_knowing(void)
{
	struct image *first, *second, *third;

	for (uint32_t i = 0; i < BLOCKS; i++)
		fill(i, i);
	first = save(0, NULL, BY_READING, "none", 1);
	flip(0, image_hashes_offset(first) + 1);
	fill(BLOCKS - 1, 1);
	second = save(1, first, BY_KNOWING, "none", 1);
	ok(second->hash_count == 1, "a hash of the parent that is not needed is not read (%zu)",
		second->hash_count);
	ok(!checked, "that it is damaged is found in the end");
	fill(BLOCKS - 2, 1);
	third = save(2, second, BY_KNOWING, "none", 1);
	ok(third->hash_count == 1, "a hash that is not needed is not read (%zu)",
		third->hash_count);
	ok(!checked, "found in the end, too, behind another image");
	flip(0, image_hashes_offset(first) + 1);
	ok(is_right(third), "and all is there");
	image_close(first);
	image_close(second);
	image_close(third);
}

int main(void)
{
	cleanup_free void *room = xcalloc(BLOCKS, IMAGE_BLOCK);

	memory = room;
	scratch_make();
	for (unsigned seed = 1; seed <= 8; seed++)
		test_random(seed);
	for (enum way way = 0; way < WAYS; way++) {
		test_earlier_release(way);
		test_damage(way);
	}
	test_knowing();
	return done_testing();
}
