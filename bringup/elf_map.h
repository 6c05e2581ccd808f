/*
 * elf_map.h - maps an ELF file as the kernel would at exec, at an address of the caller's.
 */
#ifndef BRINGUP_ELF_MAP_H
#define BRINGUP_ELF_MAP_H

#include <stddef.h>
#include <stdint.h>

struct elf_image {
	uintptr_t base; /* what its addresses count from */
	uintptr_t entry;
	uintptr_t headers; /* program headers in memory */
	unsigned header_count;
	uintptr_t text; /* the executable segment, whole pages */
	size_t text_size;
	char interpreter[256]; /* PT_INTERP, "" when there is none */
};

/* Map @path. A position-independent file is placed at @base, another where it was linked.
 * Nothing that is mapped already is replaced. 0 or -errno; on failure what was mapped stays. */
int elf_map(const char *path, uintptr_t base, struct elf_image *image);

#endif
