/* arrays.h - arrays, and what kernels see of them by textures and surfaces. */
#ifndef T_SIM_ARRAYS_H
#define T_SIM_ARRAYS_H

#include <stdint.h>

#include "shared/cuda/graph_params.h"

/* All that goes with a context. */
void arrays_context_gone(void *context);

/* 0, or what is wrong with a copy, if what it is of can be told now. */
int array_check_copy(const struct graph_memcpy *copy, const char *function);
/* Carried out. */
void array_copy(const struct graph_memcpy *copy);

/* Of @size bytes at least: ends the process if there is none. */
void *array_data(void *array, uint64_t size, const char *function);
/* The first of a live mipmapped array. */
void *array_level(void *mipmapped);

/* textures.c. All that goes with a context. */
void textures_context_gone(const void *context);
/* What a texture or surface of @context shows, of @size bytes at least: ends the process if
 * there is none, or it is of something that is no more. */
void *texture_data(const void *context, uint64_t number, uint64_t size);

#endif
