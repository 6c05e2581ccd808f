/* Memory goes into an image once: zeros are left out, what the parent has is referred to. */
#include <errno.h>

#include "ckpt/blocks.h"
#include "ckpt/hash.h"
#include "lib/util.h"
#include "t/unit/tap.h"
#include "t/unit/scratch.h"

#define BASE   0x7f0000080000ull /* in the middle of a chunk */
#define BLOCKS 3000u

static const uint8_t ids[3][16] = {"first", "second", "third"};
static const char *names[3] = {"ckpt-000001", "ckpt-000002", "ckpt-000003"};

static int read_memory(void *context, uint64_t address, void *data, size_t size, struct err *e)
{
	memcpy(data, (char *)context + (address - BASE), size);
	return 0;
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
	if (!ok(img && !image_open_chain(img, scratch_fd, "1", &e), "%s opens %s", names[n],
		    e.msg))
		exit(1);
	return img;
}

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
	struct block_job job = {.runs = runs,
		.run_count = 2,
		.writer = w,
		.parent = parent,
		.parent_source = sources,
		.threads = threads,
		.done = &done};

	for (int i = 0; i < 2; i++) {
		runs[i].context = (void *)memory;
		runs[i].keep_zero = keep_zero;
	}
	ok(!blocks_write(&job, &e), "%s is written by %u threads %s", names[n], threads, e.msg);
	ok(done == BLOCKS * IMAGE_BLOCK, "all was handled");
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

static void test_failure(const uint8_t *memory)
{
	struct image_writer *w = start(0);
	struct block_run run = {.address = BASE,
		.size = BLOCKS * IMAGE_BLOCK,
		.read = read_fails,
		.context = (void *)memory};
	struct block_job job = {.runs = &run, .run_count = 1, .writer = w};
	struct err e = ERR_INIT;

	ok(blocks_write(&job, &e) < 0, "what cannot be read fails");
	says(e.msg, "Input/output error", "with the reader's message");
	run.read = read_memory;
	job.cancelled = cancel;
	ok(blocks_write(&job, &e) < 0 && !strcmp(e.msg, "cancelled"), "it can be cancelled");
	job.run_count = 0;
	ok(!blocks_write(&job, &e), "nothing to do is no error");
	image_writer_abort(w);
}

int main(void)
{
	cleanup_free uint8_t *memory = xmalloc((size_t)BLOCKS * IMAGE_BLOCK);

	scratch_make();
	test_chain(memory, 1);
	test_chain(memory, 3);
	test_failure(memory);
	return done_testing();
}
