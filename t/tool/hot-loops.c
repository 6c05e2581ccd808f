/*
 * hot-loops - what a checkpoint does with each byte of memory, and a restart with each name, for
 * t/instructions.t to count its instructions: a function measured_* for each loop, over the same
 * blocks and names every time.
 *
 *	hot-loops names		the functions that this processor can run
 *	hot-loops DIR		call each of them once; DIR is for the image that is written
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "ckpt/blocks.h"
#include "ckpt/hash.h"
#include "ckpt/image_names.h"
#include "ckpt/hash_variant.h"
#include "lib/util.h"

#define BLOCKS 2048u
#define BASE   0x7f0000000000ull

#define MEASURED __attribute__((noinline, noclone, used))

static uint8_t *memory;
static uint8_t hashes[BLOCKS][IMAGE_HASH_SIZE];
static volatile unsigned zero_blocks;

static uint8_t *block(uint32_t i)
{
	return memory + (size_t)i * IMAGE_BLOCK;
}

/* No two blocks are equal; one in four is zero, and one in four can be compressed. */
static void fill(void)
{
	uint64_t x = 88172645463325252ull;

	memory = xmalloc((size_t)BLOCKS * IMAGE_BLOCK);
	memset(memory, 0, (size_t)BLOCKS * IMAGE_BLOCK);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		uint64_t *words = (uint64_t *)block(i);

		for (size_t k = 0; k < IMAGE_BLOCK / 8 && i % 64 >= 16; k++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			words[k] = i % 64 < 32 ? x & 0xf : x;
		}
	}
}

/* What a checkpoint does by process_vm_readv(2), which valgrind would not count either. */
static int read_memory(void *context, uint64_t address, void *data, size_t size, struct err *e)
{
	memcpy(data, memory + (address - BASE), size);
	return 0;
}

MEASURED static void measured_zero(void)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < BLOCKS; i++)
		n += is_zero(block(i), IMAGE_BLOCK);
	zero_blocks = n;
}

static void hash_all(const struct hash_variant *variant)
{
	for (uint32_t i = 0; i < BLOCKS; i++)
		variant->hash128(block(i), IMAGE_BLOCK, hashes[i]);
}

MEASURED static void measured_hash_sse2(void)
{
	hash_all(&hash_sse2);
}

MEASURED static void measured_hash_avx2(void)
{
	hash_all(&hash_avx2);
}

/* One thread: how chunks fall to several is another matter each time. */
static void write_blocks(struct image_writer *w, const char *method, const struct image *parent)
{
	static const uint32_t sources[] = {1};
	struct err e = ERR_INIT;
	struct block_run run = {
		.address = BASE, .size = (uint64_t)BLOCKS * IMAGE_BLOCK, .read = read_memory};
	struct blocks_to_write to_write = {.runs = &run,
		.run_count = 1,
		.writer = w,
		.parent = parent,
		.parent_source = sources,
		.threads = 1};

	if (pack_choice_parse(&to_write.pack, method, &e) || blocks_write(&to_write, &e)) {
		fprintf(stderr, "hot-loops: %s\n", e.msg);
		exit(1);
	}
}

MEASURED static void measured_write(struct image_writer *w)
{
	write_blocks(w, "none", NULL);
}

MEASURED static void measured_close(struct image_writer *w)
{
	if (image_writer_close(w, false, NULL))
		exit(1);
}

MEASURED static void measured_compare(struct image_writer *w, const struct image *parent)
{
	write_blocks(w, "none", parent);
}

MEASURED static void measured_lz4(struct image_writer *w)
{
	write_blocks(w, "lz4", NULL);
}

MEASURED static void measured_zstd(struct image_writer *w)
{
	write_blocks(w, "zstd", NULL);
}

static struct image_writer *open_image(int dir, const char *name)
{
	static const uint8_t id[16] = "hot loops";
	struct err e = ERR_INIT;
	struct image_writer *w = image_writer_open(dir, name, IMAGE_FILE_PROCESS, id, name, &e);
	struct image_chain link = {0};

	if (!w) {
		fprintf(stderr, "hot-loops: %s\n", e.msg);
		exit(1);
	}
	link.name = image_writer_string(w, name);
	memcpy(link.checkpoint_id, id, sizeof(id));
	for (int i = 0; i < 2; i++)
		image_writer_note(w, IMAGE_NOTE_CHAIN, &link, sizeof(link));
	return w;
}

static void name_object(struct image_writer *w, char *name, uint32_t i)
{
	sprintf(name, "/data/objects/%04u", i);
	if (w) {
		struct image_object o = {.name = image_writer_string(w, name)};

		image_writer_note(w, IMAGE_NOTE_OBJECTS, &o, sizeof(o));
	}
}

/* As many of them as there are blocks elsewhere. */
static void write_objects(int dir)
{
	struct image_writer *w = open_image(dir, "objects");
	char name[32];

	for (uint32_t i = 0; i < BLOCKS; i++)
		name_object(w, name, i);
	measured_close(w);
}

/* A restart opens an image and asks for each of its objects. */
MEASURED static void measured_names(int dir)
{
	struct err e = ERR_INIT;
	struct image *img = image_open(dir, "objects", "objects", IMAGE_FILE_PROCESS, &e);
	char name[32];

	for (uint32_t i = 0; img && i < BLOCKS; i++) {
		name_object(NULL, name, i);
		if (image_object_named(img, name, 0) != i + 1)
			img = NULL;
	}
	if (!img) {
		fprintf(stderr, "hot-loops: %s\n", e.msg);
		exit(1);
	}
	image_close(img);
}

static void measure_writing(int dir)
{
	struct image_writer *w = open_image(dir, "1");
	struct err e = ERR_INIT;
	struct image *parent;

	measured_write(w);
	measured_close(w);
	parent = image_open(dir, "1", "1", IMAGE_FILE_PROCESS, &e);
	if (!parent) {
		fprintf(stderr, "hot-loops: %s\n", e.msg);
		exit(1);
	}
	w = open_image(dir, "2");
	measured_compare(w, parent);
	image_writer_abort(w);
	image_close(parent);
	w = open_image(dir, "3");
	measured_lz4(w);
	image_writer_abort(w);
	w = open_image(dir, "4");
	measured_zstd(w);
	image_writer_abort(w);
}

int main(int argc, char *argv[])
{
	bool avx2 = __builtin_cpu_supports("avx2");
	cleanup_fd int dir = -1;

	if (argc == 2 && !strcmp(argv[1], "optimized")) {
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
		return 0;
#else
		return 1;
#endif
	}
	dir = argc == 2 ? open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (dir < 0) {
		fprintf(stderr, "usage: hot-loops DIR | optimized\n");
		return 2;
	}
	fill();
	measured_zero();
	measured_hash_sse2();
	if (avx2)
		measured_hash_avx2();
	measure_writing(dir);
	write_objects(dir);
	measured_names(dir);
	return 0;
}
