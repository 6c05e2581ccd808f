/* Blocks that processes of a tree have in common go into a checkpoint once, whatever they are compressed with and
 * whichever file they are in; no process gets a block of another one that only has the same hash. */
#include <stdlib.h>

#include "ckpt/blocks.h"
#include "ckpt/hash.h"
#include "ckpt/image_write_private.h"
#include "ckpt/common_blocks.h"
#include "t/unit/tap.h"
#include "t/unit/scratch.h"

#define BASE      0x7f0000080000ull
#define BLOCKS    1500u
#define PROCESSES 4u
/* Of each file of others some blocks are stored again, before it is worth referring to it. */
#define SPARE 64u

typedef uint8_t memory_t[BLOCKS][IMAGE_BLOCK];

static const uint8_t ids[2][16] = {"first", "second"};
static const char *const dirs[2] = {"ckpt-000001", "ckpt-000002"};
static const char *const names[PROCESSES] = {"11", "12", "13", "14"};
static memory_t *memory; /* of each process */
static struct pack_choice how;

static int read_memory(void *context, uint64_t address, void *data, size_t size, struct err *e)
{
	memcpy(data, (char *)context + (address - BASE), size);
	return 0;
}

static int open_dir(unsigned n)
{
	(void)mkdirat(scratch_fd, dirs[n], 0700); /* there already but for the first time */
	return openat(scratch_fd, dirs[n], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Of process @i in checkpoint @n, with the chain of @parent behind its own. @dir stays open. */
static struct image_writer *start(unsigned n, unsigned i, int dir, const struct image *parent)
{
	struct image_chain link = {0};
	const struct image_chain *old;
	const uint32_t *old_names;
	struct image_writer *w;
	size_t count, named;

	unlinkat(dir, names[i], 0);
	for (unsigned k = 1; k < IMAGE_FILES; k++) {
		cleanup_free char *name = xasprintf(IMAGE_BLOCKS_FILE, names[i], k);

		unlinkat(dir, name, 0);
	}
	w = image_writer_open(dir, names[i], IMAGE_FILE_PROCESS, ids[n], names[i], NULL);
	link.name = image_writer_string(w, dirs[n]);
	memcpy(link.checkpoint_id, ids[n], 16);
	image_writer_chain(w, &link, NULL);
	image_writer_expect(w, dir, names[i], sizeof(memory_t));
	if (!parent)
		return w;
	old = image_note_array(parent, IMAGE_NOTE_CHAIN, struct image_chain, &count);
	old_names = image_note_array(parent, IMAGE_NOTE_CHAIN_NAMES, uint32_t, &named);
	for (size_t k = 0; k < count; k++) {
		link = old[k];
		link.name = image_writer_string(w, image_string(parent, link.name));
		image_writer_chain(w, &link,
			k < named && old_names[k] ? image_string(parent, old_names[k]) : NULL);
	}
	return w;
}

static const uint32_t sources[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
	18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};

/* Save process @i; returns how many blocks were stored for it. */
static uint64_t save(struct image_writer *w, unsigned i, const struct image *parent,
	struct peers *peers, unsigned threads)
{
	struct block_run run = {.address = BASE,
		.size = sizeof(memory_t),
		.read = read_memory,
		.context = memory[i]};
	struct blocks_to_write to_write = {.runs = &run,
		.run_count = 1,
		.writer = w,
		.parent = parent,
		.parent_source = sources,
		.peers = peers,
		.pack = how,
		.threads = threads};
	struct err e = ERR_INIT;

	if (blocks_write(&to_write, &e))
		ok(false, "%s", e.msg);
	return image_writer_stored(w) / IMAGE_BLOCK;
}

/* The complete image of process @i, if it is right. */
static struct image *finish(struct image_writer *w, unsigned n, unsigned i, const char *what)
{
	struct err e = ERR_INIT;
	cleanup_fd int dir = open_dir(n);
	struct image *img = NULL;
	uint8_t block[IMAGE_BLOCK];
	bool same;

	if (!image_writer_close(w, false, &e))
		img = image_open(dir, names[i], names[i], IMAGE_FILE_PROCESS, &e);
	if (!img || image_open_chain(img, dir, scratch_fd, names[i], &e) ||
		image_check_all(img, &e)) {
		ok(false, "%s: process %s: %s", what, names[i], e.msg);
		exit(1);
	}
	same = true;
	for (uint32_t b = 0; b < BLOCKS && same; b++) {
		uint64_t address = BASE + (uint64_t)b * IMAGE_BLOCK;
		const struct image_extent *x = image_find(img, 0, address);

		same = !x ? is_zero(memory[i][b], IMAGE_BLOCK)
			  : !image_read_blocks(img, x, (address - x->address) / IMAGE_BLOCK, 1,
				    block, NULL) &&
				       !memcmp(block, memory[i][b], IMAGE_BLOCK);
	}
	ok(same, "%s: the image of process %s is right", what, names[i]);
	return img;
}

/* Contents that nothing makes smaller, or (@plain) much smaller. */
static void fill(uint8_t *block, uint64_t seed, bool plain)
{
	uint64_t words[IMAGE_BLOCK / 8];

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		uint64_t x = (seed << 20) + (plain ? 0 : i) + 1;

		x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
		x = (x ^ x >> 27) * 0x94d049bb133111ebull;
		words[i] = x ^ x >> 31;
	}
	memcpy(block, words, IMAGE_BLOCK);
}

static size_t links_of(const struct image *img)
{
	const uint32_t *of;
	size_t count, found = 0;

	of = image_note_array(img, IMAGE_NOTE_CHAIN_NAMES, uint32_t, &count);
	for (size_t i = 0; i < count; i++)
		found += of[i] != 0;
	return found;
}

/* A parent and three children, each of which has written to 1 % since. */
static void fork_all(bool plain)
{
	for (uint32_t b = 0; b < BLOCKS; b++)
		fill(memory[0][b], b, plain);
	for (unsigned i = 1; i < PROCESSES; i++) {
		memcpy(memory[i], memory[0], sizeof(memory_t));
		for (uint32_t b = i; b < BLOCKS; b += 100)
			fill(memory[i][b], 10000 * i + b, plain);
	}
}

/* Save all of them as checkpoint @n. */
static void save_all(unsigned n, struct image *const parents[PROCESSES],
	struct image *images[PROCESSES], uint64_t stored[PROCESSES], size_t links,
	unsigned threads, const char *what)
{
	struct image_writer *w[PROCESSES];
	struct peers *peers = peers_new(links);
	cleanup_fd int dir = open_dir(n);

	for (unsigned i = 0; i < PROCESSES; i++) {
		w[i] = start(n, i, dir, parents[i]);
		stored[i] = save(w[i], i, parents[i], parents[i] ? NULL : peers, threads);
		peers_add(peers, w[i], parents[i], sources);
	}
	peers_free(peers);
	for (unsigned i = 0; i < PROCESSES; i++)
		images[i] = finish(w[i], n, i, what);
}

static void close_all(struct image *images[PROCESSES])
{
	for (unsigned i = 0; i < PROCESSES; i++)
		image_close(images[i]);
}

static struct image *const none[PROCESSES];

static void test_forked(const char *method, unsigned threads, bool plain)
{
	cleanup_free char *what = xasprintf("%s, %u threads", method, threads);
	struct image *images[PROCESSES], *next[PROCESSES], *parents[PROCESSES];
	uint64_t stored[PROCESSES];
	struct err e = ERR_INIT;

	if (pack_choice_parse(&how, method, &e))
		abort();
	fork_all(plain);
	save_all(0, none, images, stored, 100, threads, what);
	for (unsigned i = 1; i < PROCESSES; i++)
		ok(stored[i] <= BLOCKS / 100 + SPARE &&
				images[i]->super.incompat & IMAGE_INCOMPAT_PEERS,
			"%s: what is common is stored once (%lu more)", what,
			(unsigned long)stored[i]);
	ok(!links_of(images[0]) && !(images[0]->super.incompat & IMAGE_INCOMPAT_PEERS),
		"%s: the first refers to nothing", what);

	/* The next checkpoint, with a process more, forked from the second. */
	memcpy(parents, images, sizeof(parents));
	parents[3] = NULL;
	memcpy(memory[3], memory[1], sizeof(memory_t));
	fill(memory[1][7], 77777, plain);
	fill(memory[3][9], 99999, plain);
	save_all(1, parents, next, stored, 100, threads, what);
	ok(stored[0] == 0 && stored[1] <= 1 && stored[2] == 0 && stored[3] <= 2 + SPARE,
		"%s: the next one stores what is new (%lu, %lu, %lu, %lu)", what,
		(unsigned long)stored[0], (unsigned long)stored[1], (unsigned long)stored[2],
		(unsigned long)stored[3]);
	close_all(images);
	close_all(next);
}

/* Anything at any place. */
static void test_random(unsigned seed)
{
	static const char *const methods[] = {"none", "lz4", "zstd:1"};
	cleanup_free char *what = NULL, *files = NULL;
	struct image *images[PROCESSES];
	uint64_t stored[PROCESSES];
	unsigned pool, threads;
	struct err e = ERR_INIT;

	srand(seed);
	if (pack_choice_parse(&how, methods[rand() % 3], &e))
		abort();
	pool = 2 + rand() % (2 * BLOCKS);
	threads = 1 + rand() % 4;
	files = xasprintf("%d", 1 + rand() % 4);
	setenv("TRECR_TEST_FILES", files, 1);
	what = xasprintf("seed %u", seed);
	for (unsigned i = 0; i < PROCESSES; i++)
		for (uint32_t b = 0; b < BLOCKS;) {
			unsigned from = rand() % pool, n = 1 + rand() % 50, way = rand() % 8;

			for (; n && b < BLOCKS; n--, b++, from++)
				if (way)
					fill(memory[i][b], from % pool, way > 4);
				else
					memset(memory[i][b], 0, IMAGE_BLOCK);
		}
	save_all(0, none, images, stored, rand() % 12, threads, what);
	unsetenv("TRECR_TEST_FILES");
	close_all(images);
}

/* Another process's blocks that claim to have the hashes of these. */
static void test_collision(const char *method)
{
	struct image_writer *w[2];
	struct peers *peers = peers_new(100);
	cleanup_fd int dir = open_dir(0);
	struct err e = ERR_INIT;
	size_t extents;
	struct image *img;

	if (pack_choice_parse(&how, method, &e))
		abort();
	fork_all(true);
	w[0] = start(0, 0, dir, NULL);
	save(w[0], 0, NULL, NULL, 1);
	for (uint32_t b = 0; b < BLOCKS; b += 2)
		fill(memory[1][b], 50000 + b, true);
	extents = buf_count(&w[0]->extents, struct image_extent);
	for (size_t k = 0; k < extents; k++) {
		const struct image_extent *x = buf_at(&w[0]->extents, struct image_extent, k);

		for (uint32_t b = 0; b < x->blocks; b++)
			hash128(memory[1][(x->address - BASE) / IMAGE_BLOCK + b], IMAGE_BLOCK,
				(uint8_t *)w[0]->hashes.data +
					(x->first_hash + b) * IMAGE_HASH_SIZE);
	}
	peers_add(peers, w[0], NULL, NULL);
	w[1] = start(0, 1, dir, NULL);
	save(w[1], 1, NULL, peers, 1);
	peers_free(peers);
	if (image_writer_close(w[0], false, &e))
		abort();
	img = finish(w[1], 0, 1, "hashes that are the same for other blocks");
	ok(links_of(img), "of others it has found some");
	image_close(img);
}

static void test_no_links(void)
{
	struct image *images[PROCESSES];
	uint64_t stored[PROCESSES];

	how = (struct pack_choice){0};
	fork_all(false);
	save_all(0, none, images, stored, 0, 2, "no links");
	ok(stored[1] == BLOCKS && !links_of(images[1]), "no more links than allowed");
	close_all(images);
	save_all(0, none, images, stored, 2, 2, "two links");
	ok(links_of(images[1]) + links_of(images[2]) + links_of(images[3]) == 2,
		"in all images together");
	close_all(images);
}

int main(void)
{
	memory = xcalloc(PROCESSES, sizeof(*memory));
	scratch_make();
	for (unsigned threads = 1; threads <= 3; threads += 2) {
		test_forked("none", threads, false);
		test_forked("lz4", threads, true);
		test_forked("zstd", threads, true);
		test_forked("zstd", threads, false);
	}
	setenv("TRECR_TEST_FILES", "3", 1);
	test_forked("none", 3, false);
	test_forked("lz4", 2, true);
	unsetenv("TRECR_TEST_FILES");
	for (unsigned seed = 1; seed <= 25; seed++)
		test_random(seed);
	test_collision("none");
	test_collision("lz4");
	test_no_links();
	free(memory);
	return done_testing();
}
