/*
 * Programs for the device, as a module or library is loaded from: how large they are, which
 * only they themselves tell, and whether they stay where they are. What lies in a file that the
 * program has loaded, where it cannot be written to, stays (a runtime library's always do);
 * anything else is copied.
 */
#include <elf.h>
#include <link.h>

#include "shared/raw.h"
#include "stubs/cuda/objects.h"

struct fatbin {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
};

#define FATBIN 0xba55ed50

static uint64_t greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t elf_size(const Elf64_Ehdr *e)
{
	const Elf64_Shdr *s = (const void *)((const char *)e + e->e_shoff);
	const Elf64_Phdr *p = (const void *)((const char *)e + e->e_phoff);
	uint64_t end = e->e_ehsize;

	if (e->e_shoff)
		end = greater(end, e->e_shoff + (uint64_t)e->e_shnum * e->e_shentsize);
	if (e->e_phoff)
		end = greater(end, e->e_phoff + (uint64_t)e->e_phnum * e->e_phentsize);
	for (unsigned i = 0; e->e_shoff && i < e->e_shnum; i++)
		if (s[i].sh_type != SHT_NOBITS)
			end = greater(end, s[i].sh_offset + s[i].sh_size);
	for (unsigned i = 0; e->e_phoff && i < e->e_phnum; i++)
		end = greater(end, p[i].p_offset + p[i].p_filesz);
	return end;
}

static uint64_t image_size(const void *image)
{
	const struct fatbin *f = image;

	if (f->magic == FATBIN)
		return f->header_size + f->size;
	if (raw_starts(image, "\177ELF"))
		return elf_size(image);
	return raw_length(image) + 1; /* text */
}

struct place {
	uintptr_t start, end;
	int found;
};

static int look_at_module(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct place *place = argument;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + h->p_vaddr;

		if (h->p_type == PT_LOAD && !(h->p_flags & PF_W) && place->start >= start &&
			place->end <= start + h->p_filesz)
			place->found = 1;
	}
	return place->found;
}

static int stays_mapped(const void *image, uint64_t size)
{
	struct place place = {(uintptr_t)image, (uintptr_t)image + size, 0};

	return dl_iterate_phdr(look_at_module, &place);
}

static uint64_t aligned_size(uint64_t size)
{
	return (size + 15) & ~15ul;
}

/* The program that @image, perhaps a wrapper, is about. */
static const void *unwrap_program(const void *image)
{
	const struct fatbin_wrapper *w = image;

	return w->magic == FATBIN_WRAPPER ? w->data : image;
}

STUB_HIDDEN uint64_t image_bytes(const void *image)
{
	const void *program = unwrap_program(image);
	uint64_t size = image_size(program);
	uint64_t wrapper = program != image ? aligned_size(sizeof(struct fatbin_wrapper)) : 0;

	return stays_mapped(program, size) ? wrapper : wrapper + size;
}

STUB_HIDDEN void image_copy(void *to, const void *image)
{
	const void *program = unwrap_program(image);
	uint64_t size = image_size(program);
	struct fatbin_wrapper *wrapper = to;

	if (program == image) {
		raw_copy(to, image, size);
		return;
	}
	raw_copy(to, image, sizeof(*wrapper));
	if (stays_mapped(program, size))
		return;
	wrapper->data = (char *)to + aligned_size(sizeof(*wrapper));
	raw_copy((void *)wrapper->data, program, size);
}
