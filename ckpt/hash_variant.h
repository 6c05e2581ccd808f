/*
 * hash_variant.h - XXH3 built for one kind of vector unit.
 *
 * libxxhash chooses its code when it is compiled, and Debian's package is compiled for SSE2.
 * Its own choice at run time (xxh_x86dispatch.h) is in the shared library only, where the
 * distribution builds it at all. That library takes each start of a program 50 us longer, and the
 * loader, which has no libraries, would need variants of its own all the same. So hash_variant.c is
 * compiled for each unit, and hash.c chooses among them.
 */
#ifndef CKPT_HASH_VARIANT_H
#define CKPT_HASH_VARIANT_H

#include <stddef.h>
#include <stdint.h>

struct hash_variant {
	const char *name; /* of the unit */
	void (*hash128)(const void *data, size_t size, uint8_t *out);
	uint64_t (*hash64)(const void *data, size_t size);
};

extern const struct hash_variant hash_sse2, hash_avx2, hash_avx512;

/* All that this processor can run, the fastest first. */
size_t hash_variants(const struct hash_variant *out[3]);

/* The fastest of them, found out once: CPUID takes several microseconds in a virtual machine. */
const struct hash_variant *hash_fastest(void);

#endif
