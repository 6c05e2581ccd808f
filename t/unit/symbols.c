/* The names of variables in programs for a device (lower/cuda/symbols.h): in text, in ELF
 * files, in fat binaries with entries that are compressed or for other devices, behind a
 * wrapper. */
#include <elf.h>
#include <lz4.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "lower/cuda/symbols.h"
#include "t/unit/tap.h"

static char seen[1000];
static const char all_names[] = "grown table_of weights shared_with_host one two three ";

static const char elf_names[] = "first second constant at 24 of 100 first again, 8 ";

static int note(const char *name, void *argument)
{
	strcat(seen, name);
	strcat(seen, " ");
	return 0;
}

static int note_variable(const char *name, uint64_t offset, uint64_t size, void *argument)
{
	char where[60];

	note(name, argument);
	if (size) {
		snprintf(where, sizeof(where), "at %lu of %lu ", (unsigned long)offset,
			(unsigned long)size);
		strcat(seen, where);
	}
	return 0;
}

static int note_hidden(const char *name, uint64_t offset, uint64_t size, void *argument)
{
	char what[60];

	note(name, argument);
	snprintf(what, sizeof(what), "again, %lu ", (unsigned long)size);
	strcat(seen, what);
	return 0;
}

static const char *names(const void *image)
{
	const struct names_visitor variables = {
		.variable = note_variable, .hidden = note_hidden};

	seen[0] = 0;
	return names_find(image, 9, 0, &variables) ? "failed" : seen;
}

static int ignore(const char *name, uint64_t offset, uint64_t size, void *argument)
{
	return 0;
}

static const char *allocators(const void *image)
{
	const struct names_visitor visitor = {.variable = ignore, .allocates = note};

	seen[0] = 0;
	return names_find(image, 9, 0, &visitor) ? "failed" : seen;
}

static const char ptx[] =
	".version 9.0\n.target sm_90\n.visible .global .align 4 .u32 grown = 7;\n"
	".global .align 8 .b8 table_of[16384];\n.const .align 4 .b8 weights[16];\n"
	".extern .shared .align 16 .b8 not_this[];\n"
	".global .attribute(.managed) .align 4 .u32 shared_with_host;\n"
	".global .u32 one[2] = {1, 2}, two = 3,\n\tthree[1][2] = {{4, 5}};\n"
	".visible .entry k()\n{\n\tld.global.u32 %r1, [grown];\n\tst.global.u32 [x], %r1;\n}\n";

static const char allocating[] =
	".extern .func (.param .b64 r) malloc\n(\n.param .b64 p\n)\n;\n"
	".visible .entry other()\n{\n}\n"
	".visible .entry taker(\n.param .u32 p\n)\n{\n\tcall.uni (r),\n\tmalloc,\n\t(p);\n}\n"
	".visible .entry last()\n{\n\tcall (r), my_malloc, (p);\n}\n";

/* A file with two variables, a function that allocates, by way of another, one variable that is
 * elsewhere, and another with the name of the first. */
static size_t make_elf(char *to)
{
	static const char strings[] =
		"\0first\0second\0function\0elsewhere\0malloc\0between\0none\0"
		"constant\0.nv.constant3";
	static const uint32_t calls[][2] = {{0, -1}, {3, 6}, {6, 5}, {7, 4}, {0, -2}};
	static const Elf64_Sym symbols[] = {
		{0},
		{.st_name = 1,
			.st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT),
			.st_shndx = 1,
			.st_size = 4},
		{.st_name = 7,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
			.st_shndx = 1,
			.st_size = 40},
		{.st_name = 14,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = 1,
			.st_size = 40},
		{.st_name = 23, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), .st_size = 4},
		{.st_name = 33, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)},
		{.st_name = 40, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1},
		{.st_name = 48, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1},
		{.st_name = 53,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
			.st_shndx = 5,
			.st_value = 24,
			.st_size = 8},
		{.st_name = 1,
			.st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT),
			.st_shndx = 1,
			.st_size = 8},
	};
	size_t symbols_at = sizeof(Elf64_Ehdr), strings_at = symbols_at + sizeof(symbols);
	size_t calls_at = (strings_at + sizeof(strings) + 7) & ~7ul;
	size_t sections_at = calls_at + sizeof(calls);
	const Elf64_Shdr sections[] = {
		{0},
		{.sh_type = SHT_NOBITS},
		{.sh_type = SHT_SYMTAB,
			.sh_offset = symbols_at,
			.sh_size = sizeof(symbols),
			.sh_link = 3},
		{.sh_type = SHT_STRTAB, .sh_offset = strings_at, .sh_size = sizeof(strings)},
		{.sh_type = 0x70000001, .sh_offset = calls_at, .sh_size = sizeof(calls)},
		{.sh_type = SHT_PROGBITS, .sh_name = 62, .sh_size = 100},
	};
	Elf64_Ehdr e = {
		.e_ident = ELFMAG, .e_shoff = sections_at, .e_shnum = 6, .e_shstrndx = 3};

	memcpy(to, &e, sizeof(e));
	memcpy(to + symbols_at, symbols, sizeof(symbols));
	memcpy(to + strings_at, strings, sizeof(strings));
	memcpy(to + calls_at, calls, sizeof(calls));
	memcpy(to + sections_at, sections, sizeof(sections));
	return sections_at + sizeof(sections);
}

struct entry {
	uint16_t kind, version;
	uint32_t header_size;
	uint64_t size;
	uint32_t compressed_size, reserved;
	uint16_t minor, major;
	uint32_t arch, name_offset, name_size;
	uint64_t flags, reserved2, full_size;
};

struct fatbin {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
	char entries[8192];
};

enum { PTX = 1, ELF = 2, PLAIN = 0, LZ4 = 0x2000, ZSTD = 0x8000 };

static void add(
	struct fatbin *f, int kind, int arch, uint64_t flags, const char *data, size_t size)
{
	struct entry *e = (struct entry *)(f->entries + f->size);
	char *payload = (char *)(e + 1);
	size_t n = size;

	memcpy(payload, data, size);
	if (flags == LZ4)
		n = LZ4_compress_default(data, payload, size, 4096);
	if (flags == ZSTD)
		n = ZSTD_compress(payload, 4096, data, size, 3);
	*e = (struct entry){.kind = kind,
		.version = 0x101,
		.header_size = sizeof(*e),
		.size = (n + 7) & ~7ul,
		.compressed_size = flags ? n : 0,
		.arch = arch,
		.flags = flags,
		.full_size = flags ? size : 0};
	f->size += sizeof(*e) + e->size;
}

static struct fatbin *fatbin(void)
{
	static struct fatbin f;

	f = (struct fatbin){.magic = 0xba55ed50, .version = 1, .header_size = 16};
	return &f;
}

int main(void)
{
	static char elf[4096];
	size_t size = make_elf(elf);
	struct {
		uint32_t magic, version;
		const void *data, *more;
	} wrapper = {0x466243b1, 1, NULL, NULL};
	static const char other[] = ".visible .global .u32 other;\n";
	struct fatbin *f;

	ok(!strcmp(names(ptx), all_names), "text: %s", seen);
	ok(!strcmp(names(elf), elf_names), "an ELF file: %s", seen);
	ok(!strcmp(allocators(ptx), ""), "no kernel allocates: %s", seen);
	ok(!strcmp(allocators(allocating), "taker "), "one does: %s", seen);
	ok(!strcmp(allocators(elf), "function between "), "by way of another: %s", seen);

	f = fatbin();
	add(f, PTX, 90, PLAIN, ptx, sizeof(ptx));
	add(f, ELF, 80, PLAIN, other, sizeof(other));
	ok(!strcmp(names(f), all_names), "no machine code that fits: %s", seen);
	add(f, ELF, 90, PLAIN, elf, size);
	ok(!strcmp(names(f), elf_names), "machine code that fits: %s", seen);

	f = fatbin();
	add(f, ELF, 90, ZSTD, elf, size);
	ok(!strcmp(names(f), elf_names), "compressed: %s", seen);
	f = fatbin();
	add(f, PTX, 75, LZ4, ptx, sizeof(ptx));
	ok(!strcmp(names(f), all_names), "compressed otherwise: %s", seen);
	((struct entry *)f->entries)->flags = 0x4000000;
	((struct entry *)f->entries)->flags |= LZ4;
	((struct entry *)f->entries)->full_size /= 2;
	ok(!strcmp(names(f), "failed"), "what cannot be unpacked is an error: %s", seen);

	f = fatbin();
	add(f, ELF, 90, LZ4, elf, size);
	wrapper.data = f;
	ok(!strcmp(names(&wrapper), elf_names), "behind a wrapper: %s", seen);

	f = fatbin();
	add(f, ELF, 80, PLAIN, elf, size);
	add(f, 8, 90, PLAIN, elf, size);
	ok(!strcmp(names(f), "failed"), "nothing that fits is an error: %s", seen);
	ok(!strcmp(names(fatbin()), ""), "nothing at all is none: %s", seen);
	return done_testing();
}
