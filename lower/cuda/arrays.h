/*
 * arrays.h - arrays and mipmapped arrays: their contents, which an image has at addresses that
 * are made up for them (ARRAYS_WINDOW), and all of them again in a fresh driver; textures and
 * surfaces, each with its number.
 *
 * Functions return 0, or -1 by agent_fail().
 */
#ifndef LOWER_CUDA_ARRAYS_H
#define LOWER_CUDA_ARRAYS_H

#include "shared/cuda/cuda_state.h"

/* One array with memory of its own, or of a mipmapped one all levels: for each of them @add is
 * called with where its contents are in an image. Gives each its address. */
typedef int arrays_add(void *context, uint64_t address, uint64_t size, uint32_t device);
int arrays_list(const struct cuda_state *s, arrays_add *add, void *context);

/* [address, address + size) of what arrays_list() has told last, to and from @data; NULL:
 * zeroes. */
int arrays_copy_out(uint64_t address, uint64_t size, void *data);
int arrays_copy_in(uint64_t address, uint64_t size, const void *data);

/* When there is memory. With @trial there is none for arrays: numbers of textures and surfaces
 * are tried out. */
int arrays_replay(struct cuda_state *s, int trial);

#endif
