/*
 * names.h - the variables of a program for the device, by name: out of what the program handed
 * to the driver (a wrapper, a fat binary, an ELF file or text).
 */
#ifndef LOWER_CUDA_NAMES_H
#define LOWER_CUDA_NAMES_H

/* Called with each name; the same may come twice, and some are of no variable. Not 0 ends it.
 */
typedef int name_found(const char *name, void *argument);

/* @major, @minor: of the device, as the driver chooses from a fat binary by it. 0, what @found
 * returned, or -1: it cannot be read. */
int names_find(const void *image, int major, int minor, name_found *found, void *argument);

#endif
