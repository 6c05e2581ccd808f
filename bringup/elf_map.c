/*
 * elf_map.c - the segments of one ELF file, mapped by raw system calls at addresses that the
 * caller has chosen.
 */
#include "bringup/elf_map.h"

#include <elf.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <sys/mman.h>

#include "shared/raw.h"

#define PAGE        4096ul
#define MAX_HEADERS 32

static uintptr_t page_down(uintptr_t a)
{
	return a & ~(PAGE - 1);
}

static uintptr_t page_up(uintptr_t a)
{
	return page_down(a + PAGE - 1);
}

static int protection_of(uint32_t flags)
{
	return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) |
	       (flags & PF_X ? PROT_EXEC : 0);
}

static int map_at(uintptr_t at, size_t size, int prot, int flags, int fd, size_t offset)
{
	long r = raw(SYS_mmap, at, size, prot, MAP_PRIVATE | MAP_FIXED_NOREPLACE | flags, fd,
		offset);

	if (raw_failed(r))
		return r;
	return r == (long)at ? 0 : -EEXIST; /* a kernel that does not know NOREPLACE */
}

static int map_segment(int fd, const Elf64_Phdr *h, struct elf_image *image)
{
	uintptr_t start = image->base + h->p_vaddr, page = page_down(start);
	uintptr_t file_end = start + h->p_filesz, end = start + h->p_memsz;
	uintptr_t anonymous = h->p_filesz ? page_up(file_end) : page;
	int prot = protection_of(h->p_flags), r;

	if (h->p_filesz) {
		r = map_at(page, file_end - page, prot, 0, fd, h->p_offset - (start - page));
		if (r < 0)
			return r;
		if ((prot & PROT_WRITE) && end > file_end)
			raw_zero((void *)file_end, anonymous - file_end);
	}
	if (page_up(end) > anonymous) {
		r = map_at(anonymous, page_up(end) - anonymous, prot, MAP_ANONYMOUS, -1, 0);
		if (r < 0)
			return r;
	}
	if (prot & PROT_EXEC) {
		image->text = page;
		image->text_size = page_up(file_end) - page;
	}
	return 0;
}

static long read_at(int fd, void *to, size_t size, size_t offset)
{
	long r = raw(SYS_pread64, fd, to, size, offset);

	return raw_failed(r) ? r : (size_t)r == size ? 0 : -ENOEXEC;
}

static int map_file(int fd, uintptr_t base, struct elf_image *image)
{
	Elf64_Phdr headers[MAX_HEADERS];
	Elf64_Ehdr e;
	int r = read_at(fd, &e, sizeof(e), 0);

	if (r < 0)
		return r;
	if (e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_machine != EM_X86_64 ||
		e.e_phnum > MAX_HEADERS || !raw_starts((char *)e.e_ident, ELFMAG))
		return -ENOEXEC;
	r = read_at(fd, headers, e.e_phnum * sizeof(headers[0]), e.e_phoff);
	if (r < 0)
		return r;
	image->base = e.e_type == ET_DYN ? base : 0;
	image->entry = image->base + e.e_entry;
	image->header_count = e.e_phnum;
	for (unsigned i = 0; i < e.e_phnum && r >= 0; i++) {
		const Elf64_Phdr *h = &headers[i];

		if (h->p_type == PT_INTERP && h->p_filesz <= sizeof(image->interpreter))
			r = read_at(fd, image->interpreter, h->p_filesz, h->p_offset);
		if (h->p_type != PT_LOAD)
			continue;
		r = map_segment(fd, h, image);
		if (e.e_phoff >= h->p_offset && e.e_phoff < h->p_offset + h->p_filesz)
			image->headers = image->base + h->p_vaddr + e.e_phoff - h->p_offset;
	}
	return r;
}

int elf_map(const char *path, uintptr_t base, struct elf_image *image)
{
	int fd = raw(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return fd;
	raw_zero(image, sizeof(*image));
	r = map_file(fd, base, image);
	raw(SYS_close, fd); /* read only: nothing to lose */
	return r;
}
