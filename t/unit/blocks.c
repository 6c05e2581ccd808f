/* Memory goes into an image once: zeros are left out, what the parent has is referred to. What
 * becomes smaller by it is compressed, in a chain of checkpoints with and without that. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "ckpt/blocks.h"
#include "ckpt/hash.h"
#include "lib/util.h"
#include "t/unit/tap.h"
#include "t/unit/scratch.h"

#define BASE   0x7f0000080000ull /* in the middle of a chunk */
#define BLOCKS 3000u

static const uint8_t ids[3][16] = {"first", "second", "third"};
static const char *names[3] = {"ckpt-000001", "ckpt-000002", "ckpt-000003"};

/* Of which chunks the source knows the hashes. */
static enum { OF_NONE, OF_ALL, OF_SOME } hashes;
static bool expected[BLOCKS];
static uint64_t surprises, expectations;

static int read_memory(void *context, uint64_t address, void *data, size_t size, struct err *e)
{
	for (uint64_t at = address; hashes && at < address + size; at += IMAGE_BLOCK)
		__atomic_fetch_add(
			&surprises, !expected[(at - BASE) / IMAGE_BLOCK], __ATOMIC_RELAXED);
	memcpy(data, (char *)context + (address - BASE), size);
	return 0;
}

static int hash_memory(void *context, uint64_t address, size_t count,
	uint8_t (*out)[IMAGE_HASH_SIZE], struct err *e)
{
	if (hashes == OF_SOME && address >> 20 & 1)
		return 1;
	for (size_t i = 0; i < count; i++)
		hash128((char *)context + (address - BASE) + i * IMAGE_BLOCK, IMAGE_BLOCK,
			out[i]);
	return 0;
}

static void expect_memory(void *context, uint64_t address, uint64_t size)
{
	static uint64_t last;

	surprises += expectations && address < last;
	last = address + size;
	expectations += size / IMAGE_BLOCK;
	for (uint64_t i = (address - BASE) / IMAGE_BLOCK; size; i++, size -= IMAGE_BLOCK)
		expected[i] = true;
}

static int read_fails(void *context, uint64_t address, void *data, size_t size, struct err *e)
{
	return err_set(e, EIO, "cannot read memory at %#lx", (unsigned long)address);
}

static int cancel(void *context, struct err *e)
{
	return err_set(e, 0, "cancelled");
}

static void fill(uint8_t *memory, uint32_t block, uint8_t value)
{
	memset(memory + (size_t)block * IMAGE_BLOCK, value, IMAGE_BLOCK);
	memory[(size_t)block * IMAGE_BLOCK] = block;
	memory[(size_t)block * IMAGE_BLOCK + 1] = block >> 8;
}

static int checkpoint_dir(unsigned n)
{
	(void)mkdirat(scratch_fd, names[n], 0700); /* there already the second time */
	return openat(scratch_fd, names[n], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static struct image_writer *start(unsigned n)
{
	cleanup_fd int dir = checkpoint_dir(n);
	struct image_writer *w;

	unlinkat(dir, "1", 0);
	w = image_writer_open(dir, "1", IMAGE_FILE_PROCESS, ids[n], names[n], NULL);
	for (unsigned i = 0; i <= n; i++) {
		struct image_chain link = {.name = image_writer_string(w, names[n - i])};

		memcpy(link.checkpoint_id, ids[n - i], 16);
		image_writer_note(w, IMAGE_NOTE_CHAIN, &link, sizeof(link));
	}
	return w;
}

static struct image *finish(struct image_writer *w, unsigned n)
{
	struct err e = ERR_INIT;
	cleanup_fd int dir = checkpoint_dir(n);
	struct image *img = NULL;

	if (!image_writer_close(w, false, &e))
		img = image_open(dir, "1", names[n], IMAGE_FILE_PROCESS, &e);
	if (!ok(img && !image_open_chain(img, scratch_fd, scratch_fd, "1", &e), "%s opens %s",
		    names[n], e.msg))
		exit(1);
	return img;
}

/* How the next checkpoint is written. */
static struct pack_choice how;

/* Save @memory as checkpoint @n, compared with @parent. */
static struct image *save(unsigned n, const uint8_t *memory, const struct image *parent,
	unsigned threads, bool keep_zero, uint64_t *stored)
{
	static const uint32_t sources[3] = {1, 2, 3};
	struct image_writer *w = start(n);
	struct err e = ERR_INIT;
	uint64_t done = 0;
	struct block_run runs[2] = {
		{.address = BASE, .size = 2000 * IMAGE_BLOCK, .read = read_memory},
		{.address = BASE + 2000 * IMAGE_BLOCK,
			.size = 1000 * IMAGE_BLOCK,
			.read = read_memory},
	};
	struct blocks_to_write to_write = {.runs = runs,
		.run_count = 2,
		.writer = w,
		.parent = parent,
		.parent_source = sources,
		.pack = how,
		.threads = threads,
		.done = &done};

	for (int i = 0; i < 2; i++) {
		runs[i].context = (void *)memory;
		runs[i].keep_zero = keep_zero;
		runs[i].hash = hashes ? hash_memory : NULL;
		runs[i].expect = expect_memory;
	}
	memset(expected, 0, sizeof(expected));
	surprises = expectations = 0;
	ok(!blocks_write(&to_write, &e), "%s is written by %u threads %s", names[n], threads,
		e.msg);
	ok(done == BLOCKS * IMAGE_BLOCK, "all was handled");
	ok(!surprises, "what was read had been expected, in order");
	*stored = image_writer_stored(w) / IMAGE_BLOCK;
	return finish(w, n);
}

/* Whether the image gives back @memory. */
static bool matches(const struct image *img, const uint8_t *memory)
{
	static const uint8_t zero[IMAGE_BLOCK];
	uint8_t block[IMAGE_BLOCK];

	for (uint32_t i = 0; i < BLOCKS; i++) {
		uint64_t address = BASE + (uint64_t)i * IMAGE_BLOCK;
		const struct image_extent *x = image_find(img, 0, address);
		const void *want = memory + (size_t)i * IMAGE_BLOCK;

		if (!x || x->kind == IMAGE_EXTENT_ZERO) {
			if (memcmp(want, zero, IMAGE_BLOCK))
				return false;
			continue;
		}
		if (image_read_blocks(
			    img, x, (address - x->address) / IMAGE_BLOCK, 1, block, NULL) < 0 ||
			memcmp(want, block, IMAGE_BLOCK))
			return false;
	}
	return true;
}

static void test_chain(uint8_t *memory, unsigned threads)
{
	struct image *first, *second, *third;
	uint64_t stored;

	memset(memory, 0, (size_t)BLOCKS * IMAGE_BLOCK);
	for (uint32_t i = 0; i < BLOCKS; i++)
		if (i % 7)
			fill(memory, i, 1);
	first = save(0, memory, NULL, threads, false, &stored);
	ok(stored == BLOCKS - (BLOCKS + 6) / 7, "zero blocks are left out");
	ok(matches(first, memory), "the first image is right");

	fill(memory, 1, 2);
	memset(memory + 2 * IMAGE_BLOCK, 0, IMAGE_BLOCK);
	second = save(1, memory, first, threads, false, &stored);
	ok(stored == 1, "only a changed block is stored (%lu)", (unsigned long)stored);
	if (hashes == OF_ALL)
		ok(expectations == 1, "and nothing else is read (%lu)", expectations);
	ok(matches(second, memory) && !image_check_all(second, NULL), "the second is right");

	fill(memory, 2999, 3);
	fill(memory, 2, 1); /* what it was in the first */
	third = save(2, memory, second, threads, true, &stored);
	ok(stored == 2, "two changed blocks are stored (%lu)", (unsigned long)stored);
	ok(matches(third, memory) && !image_check_all(third, NULL), "the third is right");
	ok(image_find(third, 0, BASE)->kind == IMAGE_EXTENT_ZERO,
		"zeros are recorded if asked");
	ok(image_find(third, 0, BASE + IMAGE_BLOCK)->source == 1 &&
			image_find(third, 0, BASE + 3 * IMAGE_BLOCK)->source == 2,
		"references are to the file that has the blocks");
	image_close(first);
	image_close(second);
	image_close(third);
}

/* Blocks that no method makes smaller. */
static void randomise(uint8_t *memory, uint32_t first, uint32_t blocks)
{
	uint64_t *words = (uint64_t *)(memory + (size_t)first * IMAGE_BLOCK);

	for (size_t i = 0; i < blocks * (size_t)IMAGE_BLOCK / 8; i++)
		words[i] = (words[i] + i + 1) * 0x9e3779b97f4a7c15ull ^
			   (i * 0xc2b2ae3d27d4eb4full) >> 7;
}

static uint32_t count_blocks(const struct image *img, unsigned kind, unsigned source)
{
	uint32_t n = 0;

	for (size_t i = 0; i < img->extent_count; i++)
		if (img->extents[i].kind == kind && img->extents[i].source == source)
			n += img->extents[i].blocks;
	return n;
}

static void compress(const char *text)
{
	struct err e = ERR_INIT;

	ok(!pack_choice_parse(&how, text, &e), "--compress=%s is understood %s", text, e.msg);
}

static void test_packs(uint8_t *memory, unsigned threads, const char *const methods[3])
{
	struct image *first, *second, *third;
	uint64_t stored;

	for (uint32_t i = 0; i < BLOCKS; i++)
		fill(memory, i, i + 1);
	randomise(memory, 500, 500);
	compress(methods[0]);
	first = save(0, memory, NULL, threads, false, &stored);
	ok(stored > 500 && stored < 800, "2500 of 3000 blocks become much smaller (%lu)",
		(unsigned long)stored);
	/* The packs at both ends may hold some that cannot be made smaller. */
	ok(count_blocks(first, IMAGE_EXTENT_DATA, 0) >= 480 &&
			count_blocks(first, IMAGE_EXTENT_DATA, 0) <= 500,
		"what cannot be made smaller is stored as it is");
	ok(matches(first, memory) && !image_check_all(first, NULL), "the first is right");

	/* One block in the middle of a pack, all of another pack, and some of the others. */
	fill(memory, 101, 201);
	for (uint32_t i = 160; i < 176; i++)
		fill(memory, i, 7);
	randomise(memory, 700, 3);
	compress(methods[1]);
	second = save(1, memory, first, threads, false, &stored);
	ok(stored < 21, "only what has changed is stored (%lu)", (unsigned long)stored);
	ok(count_blocks(second, IMAGE_EXTENT_PACKED, 1) > 2400, "the rest is in the parent");
	ok(matches(second, memory) && !image_check_all(second, NULL), "the second is right");

	memset(memory + 2 * IMAGE_BLOCK, 0, IMAGE_BLOCK);
	fill(memory, 102, 202);
	compress(methods[2]);
	third = save(2, memory, second, threads, true, &stored);
	ok(stored == 1, "a single block is stored (%lu)", (unsigned long)stored);
	ok(matches(third, memory) && !image_check_all(third, NULL), "the third is right");
	image_close(first);
	image_close(second);
	image_close(third);
	compress("none");
}

/* Each byte of the packs is under a hash, also the bytes that fill up their last page. */
static void test_damage(uint8_t *memory)
{
	struct err e = ERR_INIT;
	struct image *img;
	size_t unnoticed = 0;
	uint64_t stored;

	memset(memory, 0, (size_t)BLOCKS * IMAGE_BLOCK);
	for (uint32_t i = 0; i < 20; i++)
		fill(memory, i, i + 1);
	compress("lz4");
	img = save(0, memory, NULL, 1, false, &stored);
	ok(count_blocks(img, IMAGE_EXTENT_PACKED, 0) == 20, "20 blocks are compressed");
	/* Behind our back, as an open image is only read. */
	for (uint64_t at = IMAGE_HEAD_SIZE; at < img->super.meta_offset; at++) {
		cleanup_free char *path = xasprintf("/proc/self/fd/%d", img->fd);
		cleanup_fd int fd = open(path, O_RDWR | O_CLOEXEC);
		uint8_t byte, other;

		pread_all(fd, &byte, 1, at, "the image", NULL);
		other = byte ^ 4;
		pwrite_all(fd, &other, 1, at, "the image", NULL);
		unnoticed += !image_check_all(img, &e);
		pwrite_all(fd, &byte, 1, at, "the image", NULL);
	}
	ok(img->super.meta_offset > IMAGE_HEAD_SIZE && !unnoticed,
		"no damage goes unnoticed (%zu of %zu)", unnoticed,
		(size_t)(img->super.meta_offset - IMAGE_HEAD_SIZE));
	says(e.msg, "is damaged (checksum)", "with the reason");
	ok(matches(img, memory), "and it is whole again");
	image_close(img);
	compress("none");
}

static void test_choices(void)
{
	static const char *const wrong[] = {
		"", "zip", "lz4:3", "zstd:", "zstd:0", "zstd:99", "zstd:3x", "zstdx"};
	struct pack_choice choice;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		ok(pack_choice_parse(&choice, wrong[i], &e) < 0, "--compress=%s is refused",
			wrong[i]);
	ok(!pack_choice_parse(&choice, "zstd:7", &e) && choice.level == 7, "a level");
}

/* Whatever bytes are decompressed: what comes out has the size that was asked for, or nothing
 * does, and nothing is written beside it (the sanitizers see to that). */
static void test_garbage(uint8_t *memory)
{
	static const char *const methods[] = {"lz4", "zstd"};
	const size_t size = IMAGE_PACK_BLOCKS * IMAGE_BLOCK;
	cleanup_free uint8_t *packed = xmalloc(size), *out = NULL;
	unsigned wrong = 0, accepted = 0;

	for (size_t m = 0; m < ARRAY_SIZE(methods); m++) {
		struct packer *p;
		size_t used;

		compress(methods[m]);
		p = packer_new(&how);
		fill(memory, 0, 9);
		randomise(memory, 1, 2);
		used = packer_pack(p, memory, size, packed, size);
		packer_free(p);
		for (uint32_t i = 0; i < 20000; i++) {
			/* Exactly as large, so that the sanitizers see a byte too many. */
			cleanup_free uint8_t *copy = xmalloc(used);
			size_t n = i % 3 ? used : used * (i % 97) / 97;

			memcpy(copy, packed, used);
			copy[(i * 2654435761u) % (i % 2 ? used : 64)] ^= 1 << i % 8;
			free(out);
			out = xmalloc(size);
			if (pack_unpack(how.method, copy, n, out, size))
				wrong++;
			else
				accepted++;
		}
	}
	ok(wrong > 5000, "damaged packs are refused (%u; %u have other contents)", wrong,
		accepted);
	compress("none");
}

static void test_failure(const uint8_t *memory)
{
	struct image_writer *w = start(0);
	struct block_run run = {.address = BASE,
		.size = BLOCKS * IMAGE_BLOCK,
		.read = read_fails,
		.context = (void *)memory};
	struct blocks_to_write to_write = {.runs = &run, .run_count = 1, .writer = w};
	struct err e = ERR_INIT;

	ok(blocks_write(&to_write, &e) < 0, "what cannot be read fails");
	says(e.msg, "Input/output error", "with the reader's message");
	run.read = read_memory;
	to_write.cancelled = cancel;
	ok(blocks_write(&to_write, &e) < 0 && !strcmp(e.msg, "cancelled"),
		"it can be cancelled");
	to_write.run_count = 0;
	ok(!blocks_write(&to_write, &e), "nothing to do is no error");
	image_writer_abort(w);
}

/* ---- pages here and there ---- */

/* Calls that have read something, and what of it nobody was to read. */
static unsigned reads, needless;
static bool to_read[BLOCKS];

static void look_at_read(uint64_t address, size_t size)
{
	for (uint64_t at = address; at < address + size; at += IMAGE_BLOCK)
		__atomic_fetch_add(
			&needless, !to_read[(at - BASE) / IMAGE_BLOCK], __ATOMIC_RELAXED);
}

static int read_one(void *context, uint64_t address, void *data, size_t size, struct err *e)
{
	__atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED);
	look_at_read(address, size);
	memcpy(data, (char *)context + (address - BASE), size);
	return 0;
}

static int read_several(
	void *context, const struct block_piece *pieces, size_t count, struct err *e)
{
	__atomic_fetch_add(&reads, 1, __ATOMIC_RELAXED);
	for (size_t i = 0; i < count; i++) {
		look_at_read(pieces[i].address, pieces[i].size);
		memcpy(pieces[i].data, (char *)context + (pieces[i].address - BASE),
			pieces[i].size);
	}
	return 0;
}

/* Of ten blocks the first has changed, as the source knows, and the others have not. */
static struct buf scattered_runs(const uint8_t *memory, bool keep_zero)
{
	struct buf runs = {0};

	for (uint32_t i = 0; i < BLOCKS; i += 10) {
		struct block_run run = {.address = BASE + i * (uint64_t)IMAGE_BLOCK,
			.size = IMAGE_BLOCK,
			.keep_zero = keep_zero && i % 20,
			.read = read_one,
			.read_pieces = read_several,
			.context = (void *)memory};

		buf_push(&runs, struct block_run, &run);
		run.address += IMAGE_BLOCK;
		run.size = 9 * IMAGE_BLOCK;
		run.clean = true;
		buf_push(&runs, struct block_run, &run);
	}
	return runs;
}

static struct image *save_scattered(const uint8_t *memory, const struct image *parent,
	unsigned threads, bool keep_zero, uint64_t *stored)
{
	static const uint32_t sources[2] = {1, 2};
	struct image_writer *w = start(1);
	cleanup_buf struct buf runs = scattered_runs(memory, keep_zero);
	struct err e = ERR_INIT;
	uint64_t done = 0;
	struct blocks_to_write to_write = {.runs = runs.data,
		.run_count = buf_count(&runs, struct block_run),
		.writer = w,
		.parent = parent,
		.parent_source = sources,
		.pack = how,
		.threads = threads,
		.done = &done};

	reads = needless = 0;
	ok(!blocks_write(&to_write, &e), "%u threads write pages here and there %s", threads,
		e.msg);
	ok(done == BLOCKS * IMAGE_BLOCK, "all was handled");
	*stored = image_writer_stored(w) / IMAGE_BLOCK;
	return finish(w, 1);
}

/* The blocks of that number, which are zero, are in no image unless zeros are asked for. */
#define ZERO_CHANGED 1000u
#define ZERO_CLEAN   1005u
/* Said to have not changed, but the parent has not got it. */
#define NOT_THERE 1015u

static void test_scattered(uint8_t *memory, unsigned threads, const char *method)
{
	struct image *first, *second;
	uint64_t stored;

	compress(method);
	for (uint32_t i = 0; i < BLOCKS; i++)
		fill(memory, i, i % 251 + 1);
	memset(memory + ZERO_CLEAN * (size_t)IMAGE_BLOCK, 0, IMAGE_BLOCK);
	memset(memory + NOT_THERE * (size_t)IMAGE_BLOCK, 0, IMAGE_BLOCK);
	first = save(0, memory, NULL, threads, false, &stored);
	memset(to_read, 0, sizeof(to_read));
	to_read[ZERO_CLEAN] = to_read[NOT_THERE] = true;
	randomise(memory, NOT_THERE, 1);
	for (uint32_t i = 0; i < BLOCKS; i += 10) {
		randomise(memory, i, 1);
		to_read[i] = true;
	}
	memset(memory + ZERO_CHANGED * (size_t)IMAGE_BLOCK, 0, IMAGE_BLOCK);
	memset(memory + (ZERO_CHANGED + 10) * (size_t)IMAGE_BLOCK, 0, IMAGE_BLOCK);
	second = save_scattered(memory, first, threads, true, &stored);
	ok(stored == BLOCKS / 10 - 2 + 1, "what has changed, or is not there, is stored (%lu)",
		(unsigned long)stored);
	ok(!needless, "what has not is not read, if it is there (%u blocks are)", needless);
	ok(reads <= BLOCKS / 10 / 64 + 3, "many at once (%u calls for %u pages)", reads,
		BLOCKS / 10 + 2);
	ok(matches(second, memory) && !image_check_all(second, NULL), "the image is right");
	ok(!image_find(second, 0, BASE + ZERO_CLEAN * (uint64_t)IMAGE_BLOCK) &&
			!image_find(second, 0, BASE + ZERO_CHANGED * (uint64_t)IMAGE_BLOCK),
		"zeros are left out");
	ok(image_find(second, 0, BASE + (ZERO_CHANGED + 10) * (uint64_t)IMAGE_BLOCK),
		"and recorded where they were asked for, of the same chunk");
	image_close(second);
	image_close(first);
	compress("none");
}

/* Small pieces of another source do not come into the same chunk. */
static void test_mixed(uint8_t *memory)
{
	static uint8_t others[128 * IMAGE_BLOCK];
	struct image_writer *w = start(0);
	struct block_run runs[128];
	struct err e = ERR_INIT;
	unsigned wrong = 0;
	struct image *img;

	for (uint32_t i = 0; i < 64; i++) {
		fill(memory, i, 1);
		fill(others, 64 + i, 2);
		runs[2 * i] = (struct block_run){.address = BASE + i * (uint64_t)IMAGE_BLOCK,
			.size = IMAGE_BLOCK,
			.read = read_one,
			.read_pieces = read_several,
			.context = memory};
		runs[2 * i + 1] = runs[2 * i];
		runs[2 * i + 1].context = others;
		runs[2 * i + 1].address += 64 * IMAGE_BLOCK;
	}
	ok(!blocks_write(
		   &(struct blocks_to_write){
			   .runs = runs, .run_count = 128, .writer = w, .threads = 1},
		   &e),
		"two sources take turns %s", e.msg);
	img = finish(w, 0);
	for (uint32_t i = 0; i < 128; i++) {
		const struct image_extent *x = image_find(img, runs[i].object, runs[i].address);
		const uint8_t *want = (uint8_t *)runs[i].context + (runs[i].address - BASE);
		uint8_t block[IMAGE_BLOCK];

		wrong += !x ||
			 image_read_blocks(img, x, (runs[i].address - x->address) / IMAGE_BLOCK,
				 1, block, NULL) < 0 ||
			 memcmp(block, want, IMAGE_BLOCK);
	}
	ok(!wrong, "each has its own blocks (%u wrong)", wrong);
	image_close(img);
}

#define FILES 3

/* Of how many files something has been read. */
static _Atomic unsigned begun;

struct together {
	const uint8_t *memory;
	_Atomic bool has_begun;
};

/* The first to read of a file waits for those of all others. */
static int read_together(
	void *context, uint64_t address, void *data, size_t size, struct err *e)
{
	struct together *t = context;
	uint64_t deadline = clock_ns(CLOCK_MONOTONIC) + 60000000000ull;

	if (!atomic_exchange(&t->has_begun, true)) {
		begun++;
		while (begun < FILES) {
			if (clock_ns(CLOCK_MONOTONIC) > deadline)
				return err_set(e, 0, "the others have not been begun");
			sched_yield();
		}
	}
	return read_memory((void *)t->memory, address, data, size, e);
}

/* Each has its blocks elsewhere, and its own contents. */
static void test_files(const uint8_t *memory)
{
	struct together together[FILES] = {0};
	struct block_run runs[FILES];
	struct blocks_to_write files[FILES];
	struct err e = ERR_INIT;
	uint64_t done = 0;

	begun = 0;
	for (unsigned i = 0; i < FILES; i++) {
		together[i].memory = memory;
		runs[i] = (struct block_run){.address = BASE + i * 500 * IMAGE_BLOCK,
			.size = 2000 * IMAGE_BLOCK,
			.read = read_together,
			.context = &together[i]};
		files[i] = (struct blocks_to_write){.runs = &runs[i],
			.run_count = 1,
			.writer = start(i),
			.threads = FILES,
			.done = &done};
	}
	ok(!blocks_write_files(files, FILES, &e), "files are written at the same time %s",
		e.msg);
	ok(done == FILES * 2000 * IMAGE_BLOCK, "all was handled");
	for (unsigned i = 0; i < FILES; i++) {
		cleanup_free uint8_t *want = xcalloc(BLOCKS, IMAGE_BLOCK);
		size_t at = (size_t)i * 500 * IMAGE_BLOCK;
		struct image *img = finish(files[i].writer, i);

		memcpy(want + at, memory + at, (size_t)2000 * IMAGE_BLOCK);
		ok(matches(img, want), "%s has what is its own", names[i]);
		image_close(img);
	}
	ok(!blocks_write_files(NULL, 0, &e), "no file is no error");
}

int main(void)
{
	cleanup_free uint8_t *memory = xmalloc((size_t)BLOCKS * IMAGE_BLOCK);

	scratch_make();
	test_chain(memory, 1);
	test_chain(memory, 3);
	test_packs(memory, 1, (const char *const[]){"lz4", "lz4", "lz4"});
	test_packs(memory, 3, (const char *const[]){"zstd", "none", "lz4"});
	test_packs(memory, 2, (const char *const[]){"lz4", "zstd:1", "none"});
	for (hashes = OF_ALL; hashes <= OF_SOME; hashes++) {
		test_chain(memory, 3);
		test_packs(memory, 3, (const char *const[]){"lz4", "none", "zstd"});
	}
	hashes = OF_NONE;
	test_scattered(memory, 1, "none");
	test_scattered(memory, 3, "none");
	test_scattered(memory, 2, "lz4");
	test_mixed(memory);
	test_damage(memory);
	test_files(memory);
	test_garbage(memory);
	test_choices();
	test_failure(memory);
	return done_testing();
}
