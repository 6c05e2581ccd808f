/*
 * hash_variant.c - one hash variant. It is compiled once for each vector unit (Makefile), as
 * <xxhash.h> becomes other instructions each time: HASH_VARIANT is what is defined, HASH_UNIT the
 * name of the unit, which XXH_VECTOR tells <xxhash.h>.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ckpt/hash_variant.h"

static void variant_hash128(const void *data, size_t size, uint8_t *out)
{
	XXH128_canonical_t canonical;

	XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, size));
	memcpy(out, canonical.digest, sizeof(canonical.digest));
}

static uint64_t variant_hash64(const void *data, size_t size)
{
	return XXH3_64bits(data, size);
}

const struct hash_variant HASH_VARIANT = {
	.name = HASH_UNIT,
	.hash128 = variant_hash128,
	.hash64 = variant_hash64,
};
