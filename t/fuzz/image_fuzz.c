/*
 * image_fuzz - damages images and reads them.
 *
 *	image_fuzz SECONDS		from a seed of the day
 *	image_fuzz -n ROUNDS SEED	again, from the seed that a failure names
 *
 * Each round damages one of two images made by the writer. In half of the rounds the hashes
 * are made right again, hashes of packs included, so that what lies behind them is reached:
 * decompression of what is damaged, too. To be built with
 * -fsanitize=address,undefined. Besides that nothing crashes, it checks that without the
 * right hashes no damage goes unnoticed.
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "ckpt/checkpoint_check.h"
#include "ckpt/hash.h"
#include "ckpt/image_read.h"
#include "ckpt/image_write.h"
#include "ckpt/pack.h"
#include "lib/util.h"
#include "t/unit/scratch.h"

#define FILE_NAME  "42"
#define SEED_PACKS 2u

struct seed {
	enum image_file_kind kind;
	char *data;
	size_t size;
	struct image_super super;
	struct image_pack packs[SEED_PACKS]; /* the packs in this file */
	size_t pack_count;
};

static uint64_t round_seed; /* of the round at work, for the message */
static uint64_t random_state;

static uint64_t random_number(void)
{
	random_state += 0x9e3779b97f4a7c15ull;
	return hash64(&random_state, sizeof(random_state));
}

static uint64_t below(uint64_t limit)
{
	return limit ? random_number() % limit : 0;
}

static void report(void)
{
	fprintf(stderr, "image_fuzz: failed, again with: image_fuzz -n 1 %" PRIu64 "\n",
		round_seed);
}

static void fail_round(const char *what)
{
	fprintf(stderr, "image_fuzz: %s\n", what);
	report();
	exit(1);
}

/* ---- the images to damage ---- */

#define SEED_BLOCKS 8u

/* One pack of each method, behind the blocks of the same file: all of the first is used, a part
 * of the second. In a file with a parent, parts of the parent's packs as well. */
static void add_packs(struct image_writer *w, uint32_t object, const void *blocks,
	const uint8_t *hashes, bool parent)
{
	static const struct pack_choice choices[2] = {
		{.method = IMAGE_PACK_LZ4}, {.method = IMAGE_PACK_ZSTD, .level = 3}};
	static uint8_t data[2 * IMAGE_BLOCK] __attribute__((aligned(IMAGE_BLOCK)));
	struct packed_run runs[2];
	size_t used = 0;

	memset(data, 0, sizeof(data));
	for (int i = 0; i < 2; i++) {
		struct packer *p = packer_new(&choices[i]);
		size_t n = packer_pack(
			p, blocks, SEED_BLOCKS * IMAGE_BLOCK, data + used, sizeof(data) - used);

		packer_free(p);
		runs[i] = (struct packed_run){.address = 0x50000 + i * 0x10000,
			.hashes = hashes,
			.pack = {.file_offset = used,
				.size = n,
				.used = n,
				.blocks = SEED_BLOCKS,
				.method = choices[i].method}};
		used += n;
	}
	runs[1].pack.size += align_up(used, IMAGE_BLOCK) - used;
	for (int i = 0; i < 2; i++)
		runs[i].pack.hash = hash64(data + runs[i].pack.file_offset, runs[i].pack.size);
	if (image_writer_packs(w, object, data, align_up(used, IMAGE_BLOCK), runs, 2, NULL) < 0)
		abort();
	for (int i = 0; parent && i < 2; i++) {
		struct image_pack pack = runs[i].pack;

		pack.file_offset += IMAGE_HEAD_SIZE + SEED_BLOCKS * IMAGE_BLOCK;
		image_writer_reference(w, object, 0x70000 + i * 0x10000,
			&(struct block_place){.source = 1, .pack = &pack, .skip = 2}, 3,
			hashes + 2 * IMAGE_HASH_SIZE);
	}
}

/* Two of the parent's blocks with their hashes here, and three with their hashes there. */
static void add_references(
	struct image_writer *w, const uint8_t *hashes, const struct image *parent)
{
	static const uint32_t sources[] = {1};
	struct block_place place = {.source = 1, .offset = IMAGE_HEAD_SIZE};

	image_writer_reference(w, 0, 0x40000, &place, 2, hashes);
	image_writer_parent(w, parent, sources);
	place.offset += IMAGE_BLOCK;
	place.table = 1;
	place.first_hash = 1;
	image_writer_reference(w, 0, 0x48000, &place, 3, NULL);
}

/* Blocks that are the same in every file, the first of them at offset IMAGE_HEAD_SIZE; zero
 * ones; and, in a process's file with a parent, some of the parent's. */
static void add_blocks(struct image_writer *w, uint32_t object, const struct image *parent)
{
	static uint64_t blocks[SEED_BLOCKS * IMAGE_BLOCK / 8]
		__attribute__((aligned(IMAGE_BLOCK)));
	uint8_t hashes[SEED_BLOCKS * IMAGE_HASH_SIZE];

	for (uint32_t i = 0; i < SEED_BLOCKS; i++) {
		blocks[i * IMAGE_BLOCK / 8] = i + 1;
		hash128((char *)blocks + i * IMAGE_BLOCK, IMAGE_BLOCK,
			hashes + i * IMAGE_HASH_SIZE);
	}
	if (image_writer_data(w, object, 0x10000, blocks, SEED_BLOCKS, hashes, NULL) < 0)
		abort();
	image_writer_zero(w, object, 0x20000, 3);
	if (parent)
		add_references(w, hashes, parent);
	add_packs(w, object, blocks, hashes, parent);
}

static void add_notes(struct image_writer *w, enum image_file_kind kind)
{
	struct image_job_process listed = {.pid = 42};
	struct image_job job = {.process_count = 1};
	struct image_object objects[2] = {
		{.kind = IMAGE_OBJECT_MEMFD, .size = 4096}, {.kind = IMAGE_OBJECT_PIPE}};
	struct image_description file = {.kind = IMAGE_FD_MEMFD, .object = 1};
	struct image_process process = {.pid = 42};
	struct image_thread thread = {.tid = 42, .xstate_size = 64};
	struct image_region region = {.start = 0x10000, .end = 0x90000, .module = 1};
	struct image_module module = {.build_id_size = 20};
	struct image_fd fd = {.fd = 1};
	char xstate[64] = "registers";

	if (kind == IMAGE_FILE_JOB) {
		image_writer_note(w, IMAGE_NOTE_JOB, &job, sizeof(job));
		image_writer_note(w, IMAGE_NOTE_PROCESSES, &listed, sizeof(listed));
		image_writer_note(w, IMAGE_NOTE_OBJECTS, objects, sizeof(objects));
		image_writer_note(w, IMAGE_NOTE_DESCRIPTIONS, &file, sizeof(file));
		return;
	}
	region.name = image_writer_string(w, "/usr/bin/true");
	image_writer_core_note(w, "CORE", NT_AUXV, xstate, 33);
	image_writer_note(w, IMAGE_NOTE_PROCESS, &process, sizeof(process));
	image_writer_note(w, IMAGE_NOTE_THREADS, &thread, sizeof(thread));
	image_writer_note(w, IMAGE_NOTE_REGIONS, &region, sizeof(region));
	image_writer_note(w, IMAGE_NOTE_MODULES, &module, sizeof(module));
	image_writer_note(w, IMAGE_NOTE_FDS, &fd, sizeof(fd));
	image_writer_note(w, IMAGE_NOTE_XSTATE, xstate, sizeof(xstate));
	image_writer_range(w, 0x10000, 0x90000, PF_R, true);
}

static void add_chain(struct image_writer *w)
{
	struct image_chain chain[2] = {{.name = image_writer_string(w, "ckpt-000002")},
		{.name = image_writer_string(w, "ckpt-000001")}};

	chain[0].checkpoint_id[0] = 2;
	chain[1].checkpoint_id[0] = 1;
	image_writer_note(w, IMAGE_NOTE_CHAIN, chain, sizeof(chain));
}

/* Write a file of checkpoint @number, whose parent is number 1, and read it into @s; @parent is NULL where it has
 * none. */
static void make_seed(
	struct seed *s, enum image_file_kind kind, uint8_t number, const struct image *parent)
{
	const char *file = kind == IMAGE_FILE_JOB ? IMAGE_JOB_FILE : FILE_NAME;
	uint8_t id[16] = {number};
	cleanup_fd int dir = -1;
	struct image_writer *w;
	char name[32];

	snprintf(name, sizeof(name), "ckpt-%06d", number);
	(void)mkdirat(scratch_fd, name, 0700); /* there already for the second file in it */
	dir = openat(scratch_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	w = image_writer_open(dir, file, kind, id, file, NULL);
	if (number > 1)
		add_chain(w);
	add_blocks(w, kind == IMAGE_FILE_JOB, parent);
	add_notes(w, kind);
	s->kind = kind;
	if (image_writer_close(w, false, NULL) < 0 ||
		read_file_at(dir, file, &s->data, &s->size, NULL) < 0)
		abort();
	memcpy(&s->super, s->data + IMAGE_SUPER_OFFSET, sizeof(s->super));
}

/* A descriptor of a file in memory with these bytes. */
static int memory_file(const char *data, size_t size)
{
	int fd = memfd_create("image_fuzz", MFD_CLOEXEC);

	if (fd < 0 || pwrite_all(fd, data, size, 0, "memfd", NULL) < 0)
		abort();
	return fd;
}

static void find_packs(struct seed *s)
{
	struct image *img = image_open_fd(memory_file(s->data, s->size), "seed", s->kind, NULL);
	const struct image_pack *packs;
	size_t count;

	if (!img)
		abort();
	packs = image_note_array(img, IMAGE_NOTE_PACKS, struct image_pack, &count);
	for (size_t i = 0; i < img->extent_count; i++) {
		const struct image_extent *x = &img->extents[i];

		if (x->kind == IMAGE_EXTENT_PACKED && !x->source && s->pack_count < SEED_PACKS)
			s->packs[s->pack_count++] = packs[x->file_offset];
	}
	image_close(img);
	if (s->pack_count != SEED_PACKS)
		abort();
}

/* ---- damage ---- */

/* A place worth damaging: mostly the header and the metadata. */
static size_t pick_place(const struct seed *s, size_t size)
{
	size_t meta = s->super.meta_offset, place;

	switch (below(9)) {
	case 8: { /* what a method made */
		const struct image_pack *pack = &s->packs[below(s->pack_count)];

		place = pack->file_offset + below(pack->used);
		break;
	}
	case 0: /* the hole included, to which segments of zeros lead */
		place = below(size);
		break;
	case 1:
	case 2:
		place = below(IMAGE_SUPER_OFFSET + sizeof(struct image_super));
		break;
	default:
		place = meta + below(s->super.meta_size);
	}
	return place < size ? place : below(size);
}

static uint64_t interesting(const struct seed *s)
{
	static const uint64_t values[] = {0, 1, 2, 7, 8, 255, 4095, 4096, 8192, 65535, 65536,
		INT32_MAX, 0x80000000, UINT32_MAX, INT64_MAX, 1ull << 63, UINT64_MAX,
		UINT64_MAX - 4095};
	uint64_t v = values[below(ARRAY_SIZE(values))];

	switch (below(4)) {
	case 0:
		return s->super.meta_offset + below(3) * 8;
	case 1:
		return s->size - below(64);
	default:
		return v;
	}
}

static void damage_once(const struct seed *s, char *data, size_t size)
{
	size_t place = pick_place(s, size), length;
	uint64_t value = interesting(s);

	switch (below(5)) {
	case 0:
		data[place] ^= 1 << below(8);
		break;
	case 1:
		data[place] = random_number();
		break;
	case 2: /* a field */
		length = 1u << (1 + below(3));
		place -= place % length;
		if (place + length <= size)
			memcpy(data + place, &value, length);
		break;
	case 3: /* a field that is a bit off */
		place -= place % 4;
		if (place + 4 <= size) {
			uint32_t word;

			memcpy(&word, data + place, 4);
			word += (int)below(17) - 8;
			memcpy(data + place, &word, 4);
		}
		break;
	case 4: /* one part over another */
		length = 1 + below(64);
		value = pick_place(s, size);
		if (place + length <= size && value + length <= size)
			memmove(data + place, data + value, length);
	}
}

/* The same of packs: their hashes are where the seed has them, if nothing has hit them. */
static void seal_packs(const struct seed *s, char *data, size_t size)
{
	for (size_t i = 0; i < s->pack_count; i++) {
		const struct image_pack *pack = &s->packs[i];
		char *meta = data + s->super.meta_offset, *place;
		uint64_t hash;

		if (s->super.meta_offset > size || pack->file_offset + pack->size > size)
			continue;
		place = memmem(meta, size - s->super.meta_offset, &pack->hash, sizeof(hash));
		hash = hash64(data + pack->file_offset, pack->size);
		if (place)
			memcpy(place, &hash, sizeof(hash));
	}
}

static void seal_parts(const struct image_super *super, char *data, size_t size)
{
	uint64_t from = super->meta_offset, to = from + super->meta_size, behind;
	struct image_parts parts;

	memcpy(&parts, data + IMAGE_PARTS_OFFSET, sizeof(parts));
	if (to < from || to > size || parts.hashes_offset < from || parts.hashes_offset > to ||
		parts.hashes_size > to - parts.hashes_offset)
		return;
	behind = parts.hashes_offset + parts.hashes_size;
	hash128(data + from, parts.hashes_offset - from, parts.before);
	hash128(data + behind, to - behind, parts.behind);
	memcpy(data + IMAGE_PARTS_OFFSET, &parts, sizeof(parts));
}

/* Make the hashes right for what is there. */
static void seal(const struct seed *s, char *data, size_t size)
{
	struct image_super super;

	if (size < IMAGE_HEAD_SIZE)
		return;
	seal_packs(s, data, size);
	memcpy(&super, data + IMAGE_SUPER_OFFSET, sizeof(super));
	if (below(2))
		super.file_size = size - super.hole_size;
	if (below(2))
		super.meta_size = super.file_size - super.meta_offset;
	if (super.meta_offset <= size && super.meta_size <= size - super.meta_offset)
		hash128(data + super.meta_offset, super.meta_size, super.meta_hash);
	seal_parts(&super, data, size);
	super.head_hash = 0;
	memcpy(data + IMAGE_SUPER_OFFSET, &super, sizeof(super));
	super.head_hash = hash64(data, IMAGE_HEAD_SIZE);
	memcpy(data + IMAGE_SUPER_OFFSET, &super, sizeof(super));
}

/* ---- reading ---- */

static void read_notes(const struct image *img)
{
	volatile uint8_t sum = 0;
	size_t count;

	for (int type = 0; type < IMAGE_NOTE_MAX; type++) {
		const uint8_t *data = image_note(img, type, 1, &count);

		for (size_t i = 0; i < count; i++)
			sum += data[i];
	}
	for (uint32_t i = 0; i < 64; i++)
		sum += strlen(image_string(img, i));
	sum += strlen(image_string(img, random_number()));
}

/* Without its chain, which may not be open. */
static void read_hash(const struct image *img, const struct image_extent *x)
{
	const volatile uint8_t *hash = image_hash(img, x, x->blocks - 1);

	if (hash)
		(void)*hash;
}

static void read_extents(const struct image *img)
{
	size_t count;

	for (uint32_t object = 0; object < 4; object++) {
		const struct image_extent *x = image_extents(img, object, &count);

		for (size_t i = 0; i < count; i++) {
			uint64_t last = x[i].address + (x[i].blocks - 1ull) * IMAGE_BLOCK;

			if (image_find(img, object, x[i].address) != &x[i] ||
				image_find(img, object, last) != &x[i])
				fail_round("an extent is not found");
			if (image_extent_is_stored(&x[i]))
				read_hash(img, &x[i]);
		}
		image_find(img, object, random_number() & ~4095ull);
	}
}

/* Read all that there is to be read; whether all of it was right. */
static bool read_all_of(struct image *img, const struct image *job)
{
	struct err e = ERR_INIT;
	bool good;

	read_notes(img);
	read_extents(img);
	if (img->super.file_kind == IMAGE_FILE_JOB)
		good = checkpoint_check_job(img, &e) == 0;
	else
		good = checkpoint_check_process(img, job, atoi(FILE_NAME), &e) == 0;
	good &= image_open_chain(img, scratch_fd, scratch_fd, FILE_NAME, &e) == 0;
	good &= image_check_all(img, &e) == 0;
	return good;
}

/* Whether the @size bytes are accepted as an image, completely. */
static bool try(const struct seed *s, const char *data, size_t size, const struct image *job)
{
	struct err e = ERR_INIT;
	struct image *img = image_open_fd(memory_file(data, size), "fuzz", s->kind, &e);
	bool good;

	if (!img) {
		if (!*e.msg || strchr(e.msg, '\n'))
			fail_round("no proper message");
		return false;
	}
	good = read_all_of(img, job);
	image_close(img);
	return good;
}

static void fuzz_round(const struct seed *s, const struct image *job)
{
	cleanup_free char *data = NULL;
	size_t size = s->size;
	bool sealed, same, good;

	random_state = round_seed;
	sealed = below(2);
	if (!below(16))
		size = below(2) ? below(size) : size + below(8192);
	data = xcalloc(1, size);
	memcpy(data, s->data, size < s->size ? size : s->size);
	for (uint64_t i = 1 + below(4); i > 0 && size; i--)
		damage_once(s, data, size);
	if (sealed)
		seal(s, data, size);
	same = size == s->size && !memcmp(data, s->data, size);
	good = try(s, data, size, job);
	if (!sealed && !same && good)
		fail_round("damage went unnoticed");
	if (same && !good)
		fail_round("a good image was refused");
}

static void on_signal(int signal)
{
	report();
	_exit(1);
}

/* The sanitizers' way to tell that they end the program. */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

static void watch_for_crashes(void)
{
	if (__sanitizer_set_death_callback) {
		__sanitizer_set_death_callback(report);
		return;
	}
	signal(SIGSEGV, on_signal);
	signal(SIGBUS, on_signal);
	signal(SIGABRT, on_signal);
}

int main(int argc, char **argv)
{
	bool again = argc == 4 && !strcmp(argv[1], "-n");
	uint64_t rounds = again ? strtoull(argv[2], NULL, 10) : UINT64_MAX, done = 0;
	uint64_t end =
		clock_ns(CLOCK_MONOTONIC) + (argc > 1 ? atoi(argv[1]) : 10) * 1000000000ull;
	struct seed seeds[2] = {0}, parent = {0};
	struct image *job, *first;

	scratch_make();
	make_seed(&parent, IMAGE_FILE_PROCESS, 1, NULL);
	first = image_open_fd(
		memory_file(parent.data, parent.size), "parent", IMAGE_FILE_PROCESS, NULL);
	make_seed(&seeds[0], IMAGE_FILE_PROCESS, 2, first);
	make_seed(&seeds[1], IMAGE_FILE_JOB, 2, NULL);
	image_close(first);
	find_packs(&seeds[0]);
	find_packs(&seeds[1]);
	watch_for_crashes();
	job = image_open_fd(
		memory_file(seeds[1].data, seeds[1].size), "job", IMAGE_FILE_JOB, NULL);
	round_seed = again ? strtoull(argv[3], NULL, 10) : clock_ns(CLOCK_REALTIME);
	for (; done < rounds && (again || clock_ns(CLOCK_MONOTONIC) < end);
		done++, round_seed++)
		fuzz_round(&seeds[round_seed % 2], job);
	image_close(job);
	free(seeds[0].data);
	free(seeds[1].data);
	free(parent.data);
	printf("image_fuzz: %" PRIu64 " rounds\n", done);
	return 0;
}
