/*
 * filler.c - a module with one variable of the wanted size, written as an ELF file or as PTX
 * and loaded; or an allocation of managed memory.
 */
#include "lower/cuda/filler.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "lower/cuda/cuda.h"
#include "lower/heap.h"

#define NAME "trecr_filler"

/* A program for a device with one variable and nothing else, as the toolkit up to 12 writes it
 * (later drivers take it as well): no code, so nothing is compiled. */
#define EM_CUDA          190
#define CUDA_OSABI       0x33
#define CUDA_ABI         7
#define CUDA_64_BIT      0x500
#define SHT_CUDA_INFO    0x70000000
#define CUDA_TOOLKIT     120
#define CAPABILITY_MAJOR 75 /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
#define CAPABILITY_MINOR 76

enum { NONE, NAMES_OF_SECTIONS, NAMES, SYMBOLS, INFO, VARIABLES, SECTIONS };

static const char section_names[] = "\0.shstrtab\0.strtab\0.symtab\0.nv.info\0.nv.global";
static const char names[] = "\0" NAME;

static struct program {
	Elf64_Ehdr header;
	char section_names[sizeof(section_names)], names[sizeof(names)];
	Elf64_Sym symbols[2] __attribute__((aligned(8)));
	uint32_t info[1];
	Elf64_Shdr sections[SECTIONS] __attribute__((aligned(8)));
} program;

static void write_section(
	unsigned i, const char *name, uint32_t type, void *start, uint64_t size)
{
	const char *known = section_names + 1;

	while (strcmp(known, name))
		known += strlen(known) + 1;
	program.sections[i] = (Elf64_Shdr){.sh_name = known - section_names,
		.sh_type = type,
		.sh_offset = (char *)start - (char *)&program,
		.sh_size = size,
		.sh_addralign = 8};
}

/* Of the current context's device. */
static int compute_capability(void)
{
	int major = 0, minor = 0, device = 0;

	if (CUDA(cuCtxGetDevice, (int *))(&device) ||
		CUDA(cuDeviceGetAttribute, (int *, int, int))(
			&major, CAPABILITY_MAJOR, device) ||
		CUDA(cuDeviceGetAttribute, (int *, int, int))(&minor, CAPABILITY_MINOR, device))
		return 0;
	return 10 * major + minor;
}

static const void *write_program(uint64_t size)
{
	static const unsigned char ident[EI_NIDENT] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3,
		ELFCLASS64, ELFDATA2LSB, EV_CURRENT, CUDA_OSABI, CUDA_ABI};
	unsigned arch = compute_capability();
	struct program *p = &program;

	memset(p, 0, sizeof(*p));
	memcpy(p->header.e_ident, ident, sizeof(ident));
	p->header.e_type = ET_EXEC;
	p->header.e_machine = EM_CUDA;
	p->header.e_version = CUDA_TOOLKIT;
	p->header.e_shoff = (char *)p->sections - (char *)p;
	p->header.e_flags = arch | arch << 16 | CUDA_64_BIT;
	p->header.e_ehsize = sizeof(p->header);
	p->header.e_shentsize = sizeof(p->sections[0]);
	p->header.e_shnum = SECTIONS;
	p->header.e_shstrndx = NAMES_OF_SECTIONS;
	memcpy(p->section_names, section_names, sizeof(section_names));
	memcpy(p->names, names, sizeof(names));
	p->info[0] = 0x01015f03; /* EIATTR_CUDA_API_VERSION and the like; as found in files */
	write_section(NAMES_OF_SECTIONS, ".shstrtab", SHT_STRTAB, p->section_names,
		sizeof(p->section_names));
	write_section(NAMES, ".strtab", SHT_STRTAB, p->names, sizeof(p->names));
	write_section(SYMBOLS, ".symtab", SHT_SYMTAB, p->symbols, sizeof(p->symbols));
	p->sections[SYMBOLS].sh_link = NAMES;
	p->sections[SYMBOLS].sh_info = 1;
	p->sections[SYMBOLS].sh_entsize = sizeof(p->symbols[0]);
	write_section(INFO, ".nv.info", SHT_CUDA_INFO, p->info, sizeof(p->info));
	write_section(VARIABLES, ".nv.global", SHT_NOBITS, p->sections, size);
	p->sections[VARIABLES].sh_flags = SHF_ALLOC | SHF_WRITE;
	p->symbols[1] = (Elf64_Sym){.st_name = 1,
		.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
		.st_shndx = VARIABLES,
		.st_size = size};
	return p;
}

static const void *write_text(uint64_t size, int managed)
{
	static char text[200];

	snprintf(text, sizeof(text),
		".version 7.0\n.target sm_52\n.address_size 64\n"
		".visible .global %s.align 4 .b8 " NAME "[%lu];\n",
		managed ? ".attribute(.managed) " : "", (unsigned long)size);
	return text;
}

/* Text is understood by every driver, but compiled: 100 ms for the first, 5 for others. */
static int load_filler(uint64_t size, int managed, void **module)
{
	static int by_text;
	int r = by_text || managed ? 1
				   : CUDA(cuModuleLoadData, (void **, const void *))(
					     module, write_program(size));

	if (r && r != 2 /* CUDA_ERROR_OUT_OF_MEMORY */) {
		r = CUDA(cuModuleLoadData, (void **, const void *))(
			module, write_text(size, managed));
		by_text |= !r && !managed;
	}
	return r;
}

static int take_range(enum filler_heap heap, uint64_t size, struct filler *f)
{
	size_t got;
	int r;

	if (heap == FILLER_MANAGED) {
		r = CUDA(cuMemAllocManaged, (uint64_t *, size_t, unsigned))(
			&f->address, size, 1 /* CU_MEM_ATTACH_GLOBAL */);
		return r ? cuda_failed("cuMemAllocManaged", r) : 0;
	}
	r = load_filler(size, heap == FILLER_MANAGED_VARIABLES, &f->module);
	if (r)
		return cuda_failed("cuModuleLoadData", r);
	r = CUDA(cuModuleGetGlobal_v2, (uint64_t *, size_t *, void *, const char *))(
		&f->address, &got, f->module, NAME);
	return r ? cuda_failed("cuModuleGetGlobal", r) : 0;
}

int filler_take(enum filler_heap heap, uint64_t size, void *context, struct filler *f)
{
	int r;

	*f = (struct filler){.context = context};
	heap_aside++;
	r = take_range(heap, size, f);
	heap_aside--;
	return r;
}

int filler_give(const struct filler *f)
{
	int r = CUDA(cuCtxSetCurrent, (void *))(f->context);

	if (!r && f->module)
		r = CUDA(cuModuleUnload, (void *))(f->module);
	else if (!r)
		r = CUDA(cuMemFree_v2, (uint64_t))(f->address);
	return r ? cuda_failed("freeing device memory that was allocated for a moment", r) : 0;
}
