/*
 * hash.h - XXH3 of blocks. The variant for this processor (SSE2, AVX2, AVX-512) is chosen
 * when the program runs; all give the same values.
 */
#ifndef CKPT_HASH_H
#define CKPT_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* XXH3-128 of @size bytes in canonical form: 16 bytes at @out. */
void hash128(const void *data, size_t size, uint8_t *out);

/* XXH3-64 of @size bytes. */
uint64_t hash64(const void *data, size_t size);

/* Whether @size bytes (a multiple of 64) are all zero. */
bool is_zero(const void *data, size_t size);

/* XXH3-128 of a whole open file, read from its start. 0, or -1 and errno. */
int hash128_file(int fd, uint8_t *out);

#endif
