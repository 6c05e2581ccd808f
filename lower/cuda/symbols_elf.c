/* ELF files: the names of their variables, and of kernels that allocate memory. */
#include "lower/cuda/symbols.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* Symbols of a file that has been looked at. */
struct symbols {
	const Elf64_Sym *list;
	uint64_t count;
	const char *names;
};

/* Undocumented, as seen in files of CUDA 13: pairs of symbols, caller and callee; and others,
 * which begin with 0. */
#define SHT_CALL_GRAPH 0x70000001
struct edge {
	uint32_t caller, callee;
};

struct file {
	const char *data;
	const Elf64_Shdr *sections;
	unsigned count;
	uint64_t size;
	const Elf64_Shdr *names; /* of sections; NULL: they have none */
};

static int open_file(struct file *f, const char *data, uint64_t size)
{
	const Elf64_Ehdr *e = (const void *)data;

	if (size < sizeof(*e))
		return -1;
	*f = (struct file){data, (const void *)(data + e->e_shoff), e->e_shnum, size, NULL};
	if (e->e_shstrndx && e->e_shstrndx < f->count)
		f->names = &f->sections[e->e_shstrndx];
	return e->e_shoff + (uint64_t)f->count * sizeof(*f->sections) > size ? -1 : 0;
}

static int open_symbols(const struct file *f, const Elf64_Shdr *h, struct symbols *s)
{
	if (h->sh_link >= f->count || h->sh_offset + h->sh_size > f->size)
		return -1;
	s->list = (const void *)(f->data + h->sh_offset);
	s->count = h->sh_size / sizeof(*s->list);
	s->names = f->data + f->sections[h->sh_link].sh_offset;
	return 0;
}

/* The driver allocates a section of constants as a whole. */
static int is_constant(const struct file *f, const Elf64_Sym *symbol)
{
	const Elf64_Shdr *names = f->names, *h;

	if (!names || symbol->st_shndx >= f->count)
		return 0;
	h = &f->sections[symbol->st_shndx];
	return h->sh_name < names->sh_size &&
	       !strncmp(f->data + names->sh_offset + h->sh_name, ".nv.constant", 12);
}

static int is_variable(const Elf64_Sym *symbol)
{
	return ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT && symbol->st_shndx != SHN_UNDEF &&
	       symbol->st_size;
}

/* Strings of several source files have the same names in relocatable code. */
static int is_repeated(const struct symbols *s, uint64_t i)
{
	const char *name = s->names + s->list[i].st_name;

	if (ELF64_ST_BIND(s->list[i].st_info) != STB_LOCAL)
		return 0;
	for (uint64_t k = 0; k < i; k++)
		if (is_variable(&s->list[k]) && !strcmp(s->names + s->list[k].st_name, name))
			return 1;
	return 0;
}

static int find_variables(
	const struct names_visitor *v, const struct file *f, const struct symbols *s)
{
	int r = 0;

	for (uint64_t i = 0; i < s->count && !r; i++) {
		const Elf64_Sym *symbol = &s->list[i];
		const char *name = s->names + symbol->st_name;
		int together = is_constant(f, symbol);

		if (!is_variable(symbol))
			continue;
		if (v->hidden && !together && is_repeated(s, i))
			r = v->hidden(name, 0, symbol->st_size, v->argument);
		else
			r = v->variable(name, together ? symbol->st_value : 0,
				together ? f->sections[symbol->st_shndx].sh_size : 0,
				v->argument);
	}
	return r;
}

/* A function allocates, too, if it calls a function that does. */
static void spread_to_callers(unsigned char *allocates, const struct edge *edges,
	uint64_t count, const struct symbols *s)
{
	int changed = 1;

	while (changed) {
		changed = 0;
		for (uint64_t i = 0; i < count; i++) {
			const struct edge *e = &edges[i];

			if (!e->caller || e->caller >= s->count || e->callee >= s->count ||
				!allocates[e->callee] || allocates[e->caller])
				continue;
			allocates[e->caller] = changed = 1;
		}
	}
}

/* A function that has no code here: the driver's. */
static uint64_t find_malloc(const struct symbols *s)
{
	for (uint64_t i = 1; i < s->count; i++)
		if (s->list[i].st_shndx == SHN_UNDEF &&
			!strcmp(s->names + s->list[i].st_name, "malloc"))
			return i;
	return 0;
}

static int find_allocating(
	const struct names_visitor *v, const struct file *f, const struct symbols *s)
{
	uint64_t at = find_malloc(s);
	unsigned char *allocates = at ? calloc(1, s->count) : NULL;
	int r = 0, told = 0;

	if (!at || !allocates)
		return at ? -1 : 0;
	allocates[at] = 1;
	for (unsigned i = 0; i < f->count; i++) {
		const Elf64_Shdr *h = &f->sections[i];

		if (h->sh_type != SHT_CALL_GRAPH || h->sh_offset + h->sh_size > f->size)
			continue;
		spread_to_callers(allocates, (const void *)(f->data + h->sh_offset),
			h->sh_size / sizeof(struct edge), s);
		told = 1;
	}
	if (!told)
		r = v->allocates("", v->argument);
	for (uint64_t i = 1; i < s->count && !r; i++)
		if (allocates[i] && i != at)
			r = v->allocates(s->names + s->list[i].st_name, v->argument);
	free(allocates);
	return r;
}

int names_in_elf(const struct names_visitor *v, const char *data, uint64_t size)
{
	struct symbols s;
	struct file f;
	int r = open_file(&f, data, size);

	for (unsigned i = 0; !r && i < f.count; i++) {
		if (f.sections[i].sh_type != SHT_SYMTAB)
			continue;
		r = open_symbols(&f, &f.sections[i], &s);
		if (!r)
			r = find_variables(v, &f, &s);
		if (!r && v->allocates)
			r = find_allocating(v, &f, &s);
	}
	return r;
}
