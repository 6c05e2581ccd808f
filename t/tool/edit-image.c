/*
 * edit-image - change one file of an image, for the tests of what is refused.
 *
 *	edit-image FILE layout		print "NAME OFFSET SIZE" of every part
 *	edit-image FILE flip OFFSET	flip a bit there, and leave the checksums wrong
 *	edit-image FILE WHAT [VALUE]	change a field and seal the file again, so that only the
 *					value is wrong: version, machine, class, block-size,
 *					incompat, compat, cpuid, pid, build-id, file-kind, id;
 *					or another one: io-priority
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/hash.h"
#include "ckpt/image.h"

static uint8_t *file;
static struct image_super *super;

static void die(const char *what)
{
	fprintf(stderr, "edit-image: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void seal(void)
{
	struct image_parts *parts = (struct image_parts *)(file + IMAGE_PARTS_OFFSET);
	uint64_t from = super->meta_offset, to = from + super->meta_size;
	uint64_t behind = parts->hashes_offset + parts->hashes_size;

	if (super->compat & IMAGE_COMPAT_PARTS) {
		hash128(file + from, parts->hashes_offset - from, parts->before);
		hash128(file + behind, to - behind, parts->behind);
	}
	hash128(file + super->meta_offset, super->meta_size, super->meta_hash);
	super->head_hash = 0;
	super->head_hash = hash64(file, IMAGE_HEAD_SIZE);
}

/* The program headers and their number; ELF keeps a large number in a section header. */
static Elf64_Phdr *headers(size_t *n)
{
	Elf64_Ehdr *e = (Elf64_Ehdr *)file;

	*n = e->e_phnum;
	if (e->e_phnum == PN_XNUM)
		*n = ((Elf64_Shdr *)(file + e->e_shoff))->sh_info;
	return (Elf64_Phdr *)(file + e->e_phoff);
}

/* Calls @see for each note until it returns non-zero. */
static int each_note(
	int (*see)(const char *owner, Elf64_Nhdr *n, uint8_t *data, void *arg), void *arg)
{
	size_t count;
	Elf64_Phdr *p = headers(&count);

	for (size_t i = 0; i < count; i++) {
		uint64_t at = p[i].p_offset, end = at + p[i].p_filesz;

		if (p[i].p_type != PT_NOTE)
			continue;
		while (at + sizeof(Elf64_Nhdr) <= end) {
			Elf64_Nhdr *n = (Elf64_Nhdr *)(file + at);
			uint64_t align = p[i].p_align == 8 ? 8 : 4;
			uint64_t name = at + sizeof(*n);
			uint64_t data = (name + n->n_namesz + align - 1) / align * align;

			if (see((char *)file + name, n, file + data, arg))
				return 1;
			at = (data + n->n_descsz + align - 1) / align * align;
		}
	}
	return 0;
}

static int print_note(const char *owner, Elf64_Nhdr *n, uint8_t *data, void *arg)
{
	printf("note-%s-%u %zu %u\n", owner, n->n_type, (size_t)(data - file), n->n_descsz);
	return 0;
}

static void layout(void)
{
	size_t count;
	Elf64_Phdr *p = headers(&count);

	printf("head 0 %u\n", IMAGE_HEAD_SIZE);
	printf("super %u %zu\n", IMAGE_SUPER_OFFSET, sizeof(*super));
	printf("blocks %u %llu\n", IMAGE_HEAD_SIZE,
		(unsigned long long)(super->meta_offset - IMAGE_HEAD_SIZE));
	printf("meta %llu %llu\n", (unsigned long long)super->meta_offset,
		(unsigned long long)super->meta_size);
	printf("hole %llu %llu\n", (unsigned long long)super->file_size,
		(unsigned long long)super->hole_size);
	printf("headers %zu %zu\n", (size_t)((uint8_t *)p - file), count * sizeof(*p));
	for (size_t i = 0; i < count; i++)
		if (p[i].p_type == IMAGE_PT_EXTENTS || p[i].p_type == IMAGE_PT_HASHES)
			printf("%s %llu %llu\n",
				p[i].p_type == IMAGE_PT_EXTENTS ? "extents" : "hashes",
				(unsigned long long)p[i].p_offset,
				(unsigned long long)p[i].p_filesz);
	each_note(print_note, NULL);
}

static int all_features(const char *owner, Elf64_Nhdr *n, uint8_t *data, void *arg)
{
	size_t at = offsetof(struct image_job, cpuid);

	if (strcmp(owner, IMAGE_OWNER) || n->n_type != IMAGE_NOTE_BASE + IMAGE_NOTE_JOB)
		return 0;
	memset(data + at, 0xff, sizeof(((struct image_job *)0)->cpuid));
	return 1;
}

/* Notes are aligned to 4 bytes only: the array is changed in a copy. */
static int other_build(const char *owner, Elf64_Nhdr *n, uint8_t *data, void *arg)
{
	struct image_module m;

	if (strcmp(owner, IMAGE_OWNER) || n->n_type != IMAGE_NOTE_BASE + IMAGE_NOTE_MODULES)
		return 0;
	for (size_t at = 0; at + sizeof(m) <= n->n_descsz; at += sizeof(m)) {
		memcpy(&m, data + at, sizeof(m));
		if (!m.build_id_size)
			continue;
		m.build_id[0] ^= 1;
		/* The same file by size and times would not be read again. */
		m.mtime_ns ^= 1;
		memcpy(data + at, &m, sizeof(m));
		return 1;
	}
	return 0;
}

static int other_process(const char *owner, Elf64_Nhdr *n, uint8_t *data, void *arg)
{
	size_t at = offsetof(struct image_process, pid);

	if (strcmp(owner, IMAGE_OWNER) || n->n_type != IMAGE_NOTE_BASE + IMAGE_NOTE_PROCESS)
		return 0;
	data[at] ^= 1;
	return 1;
}

/* Of all threads. */
static int io_priority(const char *owner, Elf64_Nhdr *n, uint8_t *data, void *arg)
{
	if (strcmp(owner, IMAGE_OWNER) || n->n_type != IMAGE_NOTE_BASE + IMAGE_NOTE_THREADS)
		return 0;
	for (size_t at = offsetof(struct image_thread, ioprio); at < n->n_descsz;
		at += sizeof(struct image_thread))
		memcpy(data + at, arg, sizeof(((struct image_thread *)0)->ioprio));
	return 1;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";
	uint64_t value = argc > 3 ? strtoull(argv[3], NULL, 0) : 0;
	struct stat st;
	int fd, done = 1;

	if (argc < 3 || (fd = open(argv[1], O_RDWR)) < 0 || fstat(fd, &st) < 0)
		die(argc > 1 ? argv[1] : "usage");
	file = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		die(argv[1]);
	super = (struct image_super *)(file + IMAGE_SUPER_OFFSET);
	if (!strcmp(what, "layout")) {
		layout();
		return 0;
	}
	if (!strcmp(what, "flip")) {
		if (value >= (uint64_t)st.st_size)
			return 1;
		file[value] ^= 1 << (value % 8);
		return 0;
	}
	if (!strcmp(what, "version"))
		super->version = value;
	else if (!strcmp(what, "machine"))
		((Elf64_Ehdr *)file)->e_machine = value;
	else if (!strcmp(what, "class"))
		file[EI_CLASS] = value;
	else if (!strcmp(what, "block-size"))
		super->block_size = value;
	else if (!strcmp(what, "incompat"))
		super->incompat |= value;
	else if (!strcmp(what, "compat"))
		super->compat |= value;
	else if (!strcmp(what, "file-kind"))
		super->file_kind = value;
	else if (!strcmp(what, "id"))
		super->checkpoint_id[0] ^= 1;
	else if (!strcmp(what, "cpuid"))
		done = each_note(all_features, NULL);
	else if (!strcmp(what, "pid"))
		done = each_note(other_process, NULL);
	else if (!strcmp(what, "io-priority"))
		done = each_note(io_priority, &value);
	else if (!strcmp(what, "build-id"))
		done = each_note(other_build, NULL);
	else
		done = !strcmp(what, "seal");
	if (!done)
		return 1;
	seal();
	return munmap(file, st.st_size) < 0;
}
