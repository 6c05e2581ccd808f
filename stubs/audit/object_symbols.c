/*
 * object_symbols.c - the tables are found by the object's dynamic section, as sections are not in memory.
 */
#include "stubs/audit/object_symbols.h"

#include <elf.h>
#include <stdint.h>

/* What an object's dynamic section says of @tag: an address, as it is in memory; 0: nothing. */
static uintptr_t table_of(const struct link_map *map, Elf64_Sxword tag)
{
	for (const Elf64_Dyn *d = map->l_ld; d && d->d_tag != DT_NULL; d++)
		/* ld.so has not yet, or has already, added the base. */
		if (d->d_tag == tag)
			return d->d_un.d_ptr < map->l_addr ? d->d_un.d_ptr + map->l_addr
							   : d->d_un.d_ptr;
	return 0;
}

/* The same of a size. */
static size_t size_of(const struct link_map *map, Elf64_Sxword tag)
{
	for (const Elf64_Dyn *d = map->l_ld; d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == tag)
			return d->d_un.d_val;
	return 0;
}

/* How many symbols a table of GNU's hashes tells of: up to the end of the last chain. 0: it has no chain. */
static size_t count_hashed(const uint32_t *table)
{
	uint32_t buckets = table[0], offset = table[1], last = 0;
	const uint32_t *bucket = table + 4 + 2 * table[2]; /* behind words of 64 bits */
	const uint32_t *chain = bucket + buckets;

	for (uint32_t i = 0; i < buckets; i++)
		if (bucket[i] > last)
			last = bucket[i];
	if (!last)
		return 0;
	while (!(chain[last - offset] & 1))
		last++;
	return (size_t)last + 1;
}

/* How many symbols there are at least for the relocations of a table. */
static size_t count_relocated(const Elf64_Rela *r, size_t size)
{
	size_t count = 0;

	for (size_t n = r ? size / sizeof(*r) : 0; n; n--, r++)
		if (ELF64_R_SYM(r->r_info) >= count)
			count = ELF64_R_SYM(r->r_info) + 1;
	return count;
}

/*
 * No field tells how many symbols an object has, and linkers differ in what they put behind them (lld: versions and
 * hashes; ld: names). Where none is in the hashes, as nothing is exported, ld does not say there where the symbols end;
 * those that are used are in relocations.
 */
static size_t count_symbols(const struct link_map *map)
{
	const uint32_t *hashes = (const uint32_t *)table_of(map, DT_HASH);
	size_t count, calls;

	if (hashes)
		return hashes[1]; /* nchain */
	hashes = (const uint32_t *)table_of(map, DT_GNU_HASH);
	count = hashes ? count_hashed(hashes) : 0;
	if (count)
		return count;
	count = count_relocated(
		(const Elf64_Rela *)table_of(map, DT_RELA), size_of(map, DT_RELASZ));
	calls = count_relocated(
		(const Elf64_Rela *)table_of(map, DT_JMPREL), size_of(map, DT_PLTRELSZ));
	return calls > count ? calls : count;
}

struct symbols symbols_of(const struct link_map *map)
{
	struct symbols s = {
		.first = (const Elf64_Sym *)table_of(map, DT_SYMTAB),
		.names = (const char *)table_of(map, DT_STRTAB),
		.names_size = size_of(map, DT_STRSZ),
	};

	if (s.first && s.names)
		s.count = count_symbols(map);
	return s;
}

const char *symbol_name(const struct symbols *all, size_t i)
{
	uint32_t at = all->first[i].st_name;

	return at < all->names_size ? all->names + at : "";
}
