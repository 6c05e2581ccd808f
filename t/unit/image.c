/* What is written into an image is read back; what is damaged is refused with the reason. */
#include <elf.h>
#include <sys/stat.h>

#include "ckpt/hash.h"
#include "ckpt/image_read.h"
#include "ckpt/image_write.h"
#include "lib/util.h"
#include "t/unit/tap.h"
#include "t/unit/scratch.h"

#define BASE 0x10000000ull
#define NAME "4711"

static const uint8_t id[16] = "checkpoint five";
static const uint8_t parent_id[16] = "checkpoint two";

/* Blocks that differ from each other: block @i starts with @seed + @i. */
static void *make_blocks(uint32_t count, uint64_t seed, uint8_t *hashes)
{
	uint64_t *data = aligned_alloc(IMAGE_BLOCK, (size_t)count * IMAGE_BLOCK);

	for (uint32_t i = 0; i < count; i++) {
		uint64_t *block = data + i * (IMAGE_BLOCK / 8);

		for (size_t n = 0; n < IMAGE_BLOCK / 8; n++)
			block[n] = seed + i + n * 0x9e3779b97f4a7c15ull;
		hash128(block, IMAGE_BLOCK, hashes + i * IMAGE_HASH_SIZE);
	}
	return data;
}

static struct image_writer *start(int dirfd, const char *name, const uint8_t *checkpoint)
{
	struct err e = ERR_INIT;
	struct image_writer *w =
		image_writer_open(dirfd, name, IMAGE_FILE_PROCESS, checkpoint, name, &e);

	if (!w)
		diag("%s", e.msg);
	return w;
}

static void add_chain(struct image_writer *w)
{
	struct image_chain chain[2] = {{.name = image_writer_string(w, "ckpt-000005")},
		{.name = image_writer_string(w, "ckpt-000002")}};

	memcpy(chain[0].checkpoint_id, id, 16);
	memcpy(chain[1].checkpoint_id, parent_id, 16);
	image_writer_note(w, IMAGE_NOTE_CHAIN, chain, sizeof(chain));
}

/*
 * Blocks 0-3 data in two calls, 4 absent, 5-6 zero, 8-9 data, 16-17 in the parent's file.
 * Recorded out of order.
 */
static void write_memory(struct image_writer *w)
{
	uint8_t hashes[4 * IMAGE_HASH_SIZE], other[2 * IMAGE_HASH_SIZE];
	cleanup_free char *data = make_blocks(4, 100, hashes);
	cleanup_free char *more = make_blocks(2, 200, other);
	struct err e = ERR_INIT;

	image_writer_zero(w, 0, BASE + 5 * 4096, 2);
	ok(!image_writer_data(w, 0, BASE, data, 2, hashes, &e) &&
			!image_writer_data(w, 0, BASE + 2 * 4096, data + 2 * 4096, 2,
				hashes + 2 * IMAGE_HASH_SIZE, &e),
		"blocks are written");
	image_writer_reference(w, 0, BASE + 16 * 4096,
		&(struct block_place){.source = 1, .offset = 8192}, 2, hashes);
	ok(!image_writer_data(w, 0, BASE + 8 * 4096, more, 2, other, &e), "and more");
	ok(image_writer_stored(w) == 6 * 4096, "the stored bytes are counted");
}

static void write_image(void)
{
	struct image_writer *w = start(scratch_fd, NAME, id);
	struct image_fd fds[2] = {{.fd = 3}, {.fd = 7, .cloexec = 1}};
	struct err e = ERR_INIT;
	uint32_t again;

	image_writer_core_note(w, "CORE", NT_AUXV, "12345", 5);
	add_chain(w);
	write_memory(w);
	again = image_writer_string(w, "ckpt-000005");
	ok(again && again == image_writer_string(w, "ckpt-000005"),
		"equal strings share a place");
	ok(image_writer_string(w, "") == 0, "the empty string is 0");
	image_writer_note(w, IMAGE_NOTE_FDS, &fds[0], sizeof(fds[0]));
	image_writer_note(w, IMAGE_NOTE_FDS, &fds[1], sizeof(fds[1]));
	image_writer_note(w, IMAGE_NOTE_VDSO, "odd", 3);
	image_writer_range(w, BASE, BASE + 7 * 4096, PF_R | PF_W, true);
	image_writer_range(w, BASE + 7 * 4096, BASE + 32 * 4096, PF_R, false);
	ok(!image_writer_close(w, true, &e), "the image is closed %s", e.msg);
	ok(!image_writer_open(scratch_fd, NAME, IMAGE_FILE_PROCESS, id, NAME, &e),
		"an image is never overwritten");
}

static void write_parent(void)
{
	uint8_t hashes[4 * IMAGE_HASH_SIZE];
	cleanup_free char *data = make_blocks(4, 99, hashes);
	cleanup_fd int dir = -1;
	struct image_writer *w;
	struct err e = ERR_INIT;

	mkdirat(scratch_fd, "ckpt-000002", 0700);
	dir = openat(scratch_fd, "ckpt-000002", O_RDONLY | O_DIRECTORY);
	w = start(dir, NAME, parent_id);
	ok(!image_writer_data(w, 0, 0x4000, data, 4, hashes, &e) &&
			!image_writer_close(w, false, &e),
		"a parent is written");
}

static struct image *reopen(struct err *e)
{
	return image_open(scratch_fd, NAME, "DIR/" NAME, IMAGE_FILE_PROCESS, e);
}

static void test_notes(const struct image *img)
{
	const struct image_chain *chain;
	const struct image_fd *fds;
	size_t count;

	fds = image_note_array(img, IMAGE_NOTE_FDS, struct image_fd, &count);
	ok(count == 2 && fds[0].fd == 3 && fds[1].fd == 7, "a note comes back in its order");
	image_note(img, IMAGE_NOTE_VDSO, 1, &count);
	ok(count == 3, "a note of bytes has its exact size");
	ok(!image_note_array(img, IMAGE_NOTE_TIMERS, struct image_timer, &count) && !count,
		"an absent note is none");
	chain = image_note_array(img, IMAGE_NOTE_CHAIN, struct image_chain, &count);
	ok(count == 2 && !strcmp(image_string(img, chain[1].name), "ckpt-000002"),
		"strings come back");
	ok(!*image_string(img, 0) && !*image_string(img, UINT32_MAX),
		"no string is the empty string");
}

static void test_extents(const struct image *img)
{
	const struct image_extent *x;
	size_t count;

	x = image_extents(img, 0, &count);
	ok(count == 4, "contiguous extents are joined (%zu)", count);
	ok(x[0].address == BASE && x[0].blocks == 4 && x[0].kind == IMAGE_EXTENT_DATA,
		"stored blocks");
	ok(x[1].address == BASE + 5 * 4096 && x[1].blocks == 2 &&
			x[1].kind == IMAGE_EXTENT_ZERO,
		"zero blocks");
	ok(x[3].source == 1 && x[3].file_offset == 8192, "blocks of the parent");
	ok(!image_extents(img, 1, &count) && !count, "another object has none");
	ok(image_find(img, 0, BASE) == &x[0] && image_find(img, 0, BASE + 3 * 4096) == &x[0] &&
			image_find(img, 0, BASE + 9 * 4096) == &x[2],
		"a block's extent is found");
	ok(!image_find(img, 0, BASE + 4 * 4096) && !image_find(img, 0, BASE - 4096) &&
			!image_find(img, 0, BASE + 18 * 4096) && !image_find(img, 1, BASE),
		"a block that was not stored has none");
}

static void test_blocks(struct image *img)
{
	uint8_t hashes[4 * IMAGE_HASH_SIZE];
	cleanup_free char *want = make_blocks(4, 100, hashes);
	cleanup_free char *got = xmalloc(4 * 4096);
	const struct image_extent *x;
	struct err e = ERR_INIT;
	size_t count;

	x = image_extents(img, 0, &count);
	ok(!image_read_blocks(img, &x[0], 1, 3, got, &e) && !memcmp(got, want + 4096, 3 * 4096),
		"blocks are read back");
	ok(image_check_all(img, &e) < 0, "without the chain, not all can be read");
	says(e.msg, "is not open", "and the message says so");
	ok(image_open_chain(img, scratch_fd, scratch_fd, NAME, &e) < 0,
		"a parent that is not there");
	says(e.msg,
		"cannot open parent checkpoint ckpt-000002 (needed by ckpt-000005): No such "
		"file",
		"is named, and who needs it");
}

static void test_chain(void)
{
	struct err e = ERR_INIT;
	struct image *img = reopen(&e);

	ok(!image_open_chain(img, scratch_fd, scratch_fd, NAME, &e), "the chain opens %s",
		e.msg);
	ok(!image_check_all(img, &e), "all blocks are right %s", e.msg);
	image_close(img);
}

static const Elf64_Phdr *find_load(const Elf64_Phdr *h, size_t count, uint64_t address)
{
	for (size_t i = 0; i < count; i++)
		if (h[i].p_type == PT_LOAD && h[i].p_vaddr == address)
			return &h[i];
	return NULL;
}

static void test_core(void)
{
	cleanup_free char *data = NULL;
	const Elf64_Phdr *h, *load;
	const Elf64_Ehdr *elf;
	size_t size, n;

	if (read_file_at(scratch_fd, NAME, &data, &size, NULL) < 0)
		return;
	elf = (void *)data;
	n = elf->e_phnum;
	h = (void *)(data + elf->e_phoff);
	ok(elf->e_type == ET_CORE && h[0].p_type == PT_NOTE, "it is a core file, notes first");
	load = find_load(h, n, BASE);
	ok(load && load->p_filesz == 4 * 4096 && load->p_memsz == 4 * 4096, "stored memory");
	load = find_load(h, n, BASE + 4 * 4096);
	ok(load && load->p_filesz == 4096 && load->p_offset + load->p_filesz <= size &&
			is_zero(data + load->p_offset, 4096),
		"a gap that reads as zeros");
	load = find_load(h, n, BASE + 7 * 4096);
	ok(load && load->p_filesz == 0 && load->p_memsz == 4096 && load->p_offset,
		"a leading gap, which does not start with this file's own header");
	load = find_load(h, n, BASE + 8 * 4096);
	ok(load && load->p_filesz == 2 * 4096 && load->p_memsz == 24 * 4096,
		"memory without contents behind stored memory");
	ok(size % 4096 == 0, "the file ends at a block");
}

/* Change @size bytes of a copy at @offset and see that it is refused saying @want. */
static void damaged(size_t offset, const void *change, size_t size, const char *want)
{
	cleanup_free char *data = NULL;
	struct err e = ERR_INIT;
	cleanup_fd int fd = -1;
	struct image *img;
	size_t len;

	if (read_file_at(scratch_fd, NAME, &data, &len, NULL) < 0)
		return;
	memcpy(data + offset, change, size);
	unlinkat(scratch_fd, "bad", 0);
	fd = openat(scratch_fd, "bad", O_RDWR | O_CREAT | O_EXCL, 0600);
	write_all(fd, data, len, "bad", NULL);
	img = image_open(scratch_fd, "bad", "DIR/bad", IMAGE_FILE_PROCESS, &e);
	ok(!img, "refused: %s", want);
	says(e.msg, want, "with the reason");
	image_close(img);
}

static void test_damage(const struct image_super *super)
{
	uint32_t version = 7;

	damaged(IMAGE_SUPER_OFFSET, "X", 1, "it is not a trecr image");
	damaged(0, "X", 1, "it is not a trecr image");
	damaged(IMAGE_SUPER_OFFSET + offsetof(struct image_super, version), &version, 4,
		"written by image format version 7, this trecr reads version 3");
	damaged(200, "X", 1, "its header is damaged (checksum)");
	damaged(24, "X", 1, "its header is damaged (checksum)");
	damaged(super->meta_offset + 9, "X", 1, "its metadata is damaged (checksum)");
}

static void test_files(void)
{
	struct err e = ERR_INIT;
	struct image *img = reopen(&e);
	uint64_t size = img->super.file_size + img->super.hole_size;

	test_damage(&img->super);
	image_close(img);
	ok(!image_open(scratch_fd, NAME, "DIR/" NAME, IMAGE_FILE_JOB, &e), "not of that kind");
	says(e.msg, "it is of kind 2, not 1", "with the reason");
	fchmodat(scratch_fd, NAME, 0620, 0);
	ok(!reopen(&e), "others may write to it");
	says(e.msg, "refusing DIR/4711: others may write to it (mode 0620)", "with the reason");
	fchmodat(scratch_fd, NAME, 0600, 0);
	ok(!truncate(strcat(strcat((char[128]){0}, scratch_path), "/" NAME), size - 4096),
		"cut");
	ok(!reopen(&e), "a truncated image is refused");
	says(e.msg, "cannot read image DIR/4711: it is truncated (", "with the reason");
	ok(!image_open(scratch_fd, "nowhere", "DIR/nowhere", IMAGE_FILE_JOB, &e), "not there");
	says(e.msg, "cannot open image DIR/nowhere: No such file", "with the reason");
}

static void test_wrong_parent(void)
{
	struct err e = ERR_INIT;
	struct image *img = reopen(&e);
	cleanup_fd int dir = openat(scratch_fd, "ckpt-000002", O_RDONLY | O_DIRECTORY);
	struct image_writer *w;

	unlinkat(dir, NAME, 0);
	w = start(dir, NAME, id);
	image_writer_close(w, false, &e);
	ok(image_open_chain(img, scratch_fd, scratch_fd, NAME, &e) < 0,
		"another checkpoint of that name");
	says(e.msg, "it is not the checkpoint that ckpt-000005 was made from", "is refused");
	image_close(img);

	img = reopen(&e);
	unlinkat(dir, NAME, 0);
	w = start(dir, NAME, parent_id);
	image_writer_close(w, false, &e);
	ok(image_open_chain(img, scratch_fd, scratch_fd, NAME, &e) < 0,
		"a parent without those blocks");
	says(e.msg, "is outside of ckpt-000002/", "is refused");
	image_close(img);
}

/* One more program header than an ELF header can count. */
static void test_many_headers(void)
{
	struct image_writer *w = start(scratch_fd, "many", id);
	struct err e = ERR_INIT;
	struct image *img;
	Elf64_Ehdr elf;

	for (uint64_t i = 0; i < 65535; i++)
		image_writer_range(w, i * 8192 + 4096, i * 8192 + 8192, PF_R, false);
	ok(!image_writer_close(w, false, &e), "65535 segments are written");
	img = image_open(scratch_fd, "many", "many", IMAGE_FILE_PROCESS, &e);
	ok(img != NULL, "and read %s", e.msg);
	ok(img && !pread_all(img->fd, &elf, sizeof(elf), 0, "", &e) && elf.e_phnum == PN_XNUM &&
			elf.e_shnum == 1,
		"counted by section header 0");
	image_close(img);
}

int main(void)
{
	struct err e = ERR_INIT;
	struct image *img;

	scratch_make();
	write_image();
	img = reopen(&e);
	if (!ok(img != NULL, "the image opens %s", e.msg))
		return done_testing();
	test_notes(img);
	test_extents(img);
	test_blocks(img);
	image_close(img);
	write_parent();
	test_chain();
	test_core();
	test_wrong_parent();
	test_files();
	test_many_headers();
	return done_testing();
}
