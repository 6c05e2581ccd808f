/*
 * check_blocks.c - compiled once for each vector unit (Makefile), as ckpt/hash_variant.c is, and for
 * the same reason. CHECK_BLOCKS names the function.
 */
#include <string.h>
/* Only of a few bytes, which takes no call; a freestanding compiler has to be told so. */
#define memcpy __builtin_memcpy
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ckpt/image.h"
#include "loader/check_blocks.h"

unsigned long CHECK_BLOCKS(
	const unsigned char *data, unsigned long blocks, const unsigned char *hashes)
{
	for (unsigned long i = 0; i < blocks; i++) {
		XXH128_hash_t h = XXH3_128bits(data + i * IMAGE_BLOCK, IMAGE_BLOCK);
		unsigned long want[2];

		__builtin_memcpy(want, hashes + i * IMAGE_HASH_SIZE, sizeof(want));
		/* Their canonical form is big-endian. */
		if (__builtin_bswap64(want[0]) != h.high64 ||
			__builtin_bswap64(want[1]) != h.low64)
			return i;
	}
	return blocks;
}
