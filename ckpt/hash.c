/*
 * hash.c - chooses the variant, and hashes with it.
 */
#include "ckpt/hash.h"

#include <cpuid.h>
#include <errno.h>
#include <string.h>
/* All of it in here: a library less to be loaded at each start. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ckpt/hash_variant.h"
#include "lib/util.h"
#include "lib/xcr0.h"

#define FILE_CHUNK (1u << 20)

/* NULL: not chosen yet. Threads that choose at the same time choose alike. */
static const struct hash_variant *chosen;

/* CPUID leaf 7, EBX */
#define HAS_AVX2    (1u << 5)
#define HAS_AVX512F (1u << 16)
/* What the kernel has to save for them (xcr0_read()) */
#define SAVES_AVX    0x06
#define SAVES_AVX512 0xe6

static bool can_run(uint32_t units, uint64_t saved, uint32_t unit, uint64_t needed)
{
	return units & unit && (saved & needed) == needed;
}

size_t hash_variants(const struct hash_variant *out[3])
{
	uint32_t eax, units = 0, ecx = 0, edx;
	uint64_t saved;
	size_t n = 0;

	(void)__get_cpuid(1, &eax, &units, &ecx, &edx);
	saved = xcr0_read(ecx);
	units = 0; /* for processors that have no leaf 7 */
	(void)__get_cpuid_count(7, 0, &eax, &units, &ecx, &edx);
	if (can_run(units, saved, HAS_AVX512F, SAVES_AVX512))
		out[n++] = &hash_avx512;
	if (can_run(units, saved, HAS_AVX2, SAVES_AVX))
		out[n++] = &hash_avx2;
	out[n++] = &hash_sse2;
	return n;
}

/* With the first hash, not at each start of a program: in a virtual machine each CPUID takes
 * several microseconds. So __builtin_cpu_supports() must not be used either, as it brings in a
 * constructor of libgcc's that asks for everything. */
const struct hash_variant *hash_fastest(void)
{
	const struct hash_variant *all[3],
		*variant = __atomic_load_n(&chosen, __ATOMIC_RELAXED);

	if (variant)
		return variant;
	hash_variants(all);
	__atomic_store_n(&chosen, all[0], __ATOMIC_RELAXED);
	return all[0];
}

void hash128(const void *data, size_t size, uint8_t *out)
{
	hash_fastest()->hash128(data, size, out);
}

uint64_t hash64(const void *data, size_t size)
{
	return hash_fastest()->hash64(data, size);
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
