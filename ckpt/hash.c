/*
 * hash.c - chooses the variant, and hashes with it.
 */
#include "ckpt/hash.h"

#include <errno.h>
#include <string.h>
/* All of it in here: a library less to be loaded at each start. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ckpt/hash_variant.h"
#include "lib/util.h"

#define FILE_CHUNK (1u << 20)

static const struct hash_variant *chosen = &hash_sse2;

size_t hash_variants(const struct hash_variant *out[3])
{
	size_t n = 0;

	if (__builtin_cpu_supports("avx512f"))
		out[n++] = &hash_avx512;
	if (__builtin_cpu_supports("avx2"))
		out[n++] = &hash_avx2;
	out[n++] = &hash_sse2;
	return n;
}

/* Before main, so that no thread ever sees the choice change. */
__attribute__((constructor)) static void choose(void)
{
	const struct hash_variant *all[3];

	hash_variants(all);
	chosen = all[0];
}

void hash128(const void *data, size_t size, uint8_t *out)
{
	chosen->hash128(data, size, out);
}

uint64_t hash64(const void *data, size_t size)
{
	return chosen->hash64(data, size);
}

/* If the first 64 bytes are zero and every byte equals the one 64 before it, all are zero.
 * memcmp is the C library's, which uses the processor's widest registers. */
bool is_zero(const void *data, size_t size)
{
	static const uint8_t zero[64];

	if (!size)
		return true;
	return !memcmp(data, zero, 64) && !memcmp(data, (const uint8_t *)data + 64, size - 64);
}

int hash128_file(int fd, uint8_t *out)
{
	cleanup_free void *chunk = xmalloc(FILE_CHUNK);
	XXH3_state_t *state = XXH3_createState();
	XXH128_canonical_t canonical;
	uint64_t offset = 0;
	ssize_t n;

	if (!state || XXH3_128bits_reset(state) == XXH_ERROR) {
		XXH3_freeState(state);
		errno = ENOMEM;
		return -1;
	}
	while ((n = pread(fd, chunk, FILE_CHUNK, offset))) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		/* Fails only for a null pointer. */
		(void)XXH3_128bits_update(state, chunk, n);
		offset += n;
	}
	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
	memcpy(out, canonical.digest, sizeof(canonical.digest));
	XXH3_freeState(state);
	return n;
}
