/*
 * symbols.h - what is in a program for the device, by name: out of what the program handed to
 * the driver (a wrapper, a fat binary, an ELF file or text).
 */
#ifndef LOWER_CUDA_SYMBOLS_H
#define LOWER_CUDA_SYMBOLS_H

#include <stdint.h>

#define FATBIN_WRAPPER 0x466243b1 /* in front of what a compiler leaves in a program */

/* Called with a name; the same may come twice. Not 0 ends it. */
typedef int name_found(const char *name, void *argument);
/* The same with where in what the driver allocates for it a variable lies, @size bytes in all:
 * constants lie together. @size is 0 for what is on its own, or when it is not known. */
typedef int variable_found(const char *name, uint64_t offset, uint64_t size, void *argument);

struct names_visitor {
	variable_found *variable; /* some are of none */
	/* One more that has the name of one before it, of @size bytes. May be NULL. */
	variable_found *hidden;
	name_found *allocates; /* a kernel that calls malloc; "": any may. May be NULL */
	void *argument;
};

/* @major, @minor: of the device, as the driver chooses from a fat binary by it. 0, what a
 * function of @visitor returned, or -1: it cannot be read. */
int names_find(const void *image, int major, int minor, const struct names_visitor *visitor);

/* In one program: a file (symbols_elf.c), text (symbols_ptx.c). */
int names_in_elf(const struct names_visitor *visitor, const char *data, uint64_t size);
int names_in_text(const struct names_visitor *visitor, const char *text);

#endif
