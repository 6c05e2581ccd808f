/*
 * object_symbols.h - the dynamic symbols of an object that ld.so has mapped, as the System V ABI has them
 * (https://gabi.xinuos.com), with GNU's hashes.
 */
#ifndef STUBS_AUDIT_OBJECT_SYMBOLS_H
#define STUBS_AUDIT_OBJECT_SYMBOLS_H

#include <link.h>
#include <stddef.h>

struct symbols {
	const Elf64_Sym *first;
	size_t count;
	const char *names;
	size_t names_size;
};

/* Those of @map; none if it has none. They are the object's own memory. */
struct symbols symbols_of(const struct link_map *map);

/* The name of symbol @i; "" if it lies outside of the names. */
const char *symbol_name(const struct symbols *all, size_t i);

#endif
