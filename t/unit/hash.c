/* Hashes are the same whatever the processor, and zero is zero wherever a bit may hide. */
#include <fcntl.h>
#include <stdlib.h>

#include "ckpt/hash.h"
#include "ckpt/hash_variant.h"
#include "lib/util.h"
#include "t/unit/tap.h"

static void fill(uint8_t *data, size_t size)
{
	uint64_t state = 88172645463325252ull;

	for (size_t i = 0; i < size; i++) {
		state ^= state << 13, state ^= state >> 7, state ^= state << 17;
		data[i] = state;
	}
}

static void test_variants(const uint8_t *data)
{
	static const size_t sizes[] = {
		0, 1, 16, 17, 128, 129, 240, 241, 1024, 4095, 4096, 65537};
	const struct hash_variant *all[3];
	size_t count = hash_variants(all);

	for (size_t v = 0; v < count; v++) {
		bool same = true;

		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			uint8_t want[16], got[16];

			hash_sse2.hash128(data + 1, sizes[i], want);
			all[v]->hash128(data + 1, sizes[i], got);
			same &= !memcmp(want, got, 16);
			same &= hash_sse2.hash64(data, sizes[i]) ==
				all[v]->hash64(data, sizes[i]);
		}
		ok(same, "%s gives what sse2 gives", all[v]->name);
	}
}

static void test_known_values(void)
{
	static const uint8_t empty[16] = {0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8, 0x60,
		0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f};
	uint8_t got[16];

	hash128("", 0, got);
	ok(!memcmp(got, empty, 16), "XXH3-128 of nothing, canonical");
	ok(hash64("", 0) == 0x2d06800538d394c2ull, "XXH3-64 of nothing");
}

static void test_zero(void)
{
	cleanup_free uint8_t *data = xcalloc(1, 4096);
	bool good = true;

	ok(is_zero(data, 4096), "a zero block is zero");
	ok(is_zero(data, 64) && is_zero(data, 0), "so are 64 bytes and none");
	for (size_t i = 0; i < 4096; i++) {
		data[i] = 0x10;
		good &= !is_zero(data, 4096);
		data[i] = 0;
	}
	ok(good, "one bit anywhere in a block is seen");
	memset(data, 7, 4096);
	ok(!is_zero(data, 4096), "a block of equal bytes is not zero");
}

static void test_file(const uint8_t *data, size_t size)
{
	char path[] = "/tmp/trecr-hash-XXXXXX";
	cleanup_fd int fd = mkstemp(path);
	uint8_t want[16], got[16];

	unlink(path);
	ok(fd >= 0 && write_all(fd, data, size, path, NULL) == 0, "a file is written");
	hash128(data, size, want);
	ok(hash128_file(fd, got) == 0 && !memcmp(want, got, 16),
		"a file's hash is that of its bytes");
	ok(hash128_file(-1, got) < 0, "no file, no hash");
}

int main(void)
{
	size_t size = (3u << 20) + 17;
	cleanup_free uint8_t *data = xmalloc(size);

	fill(data, size);
	test_known_values();
	test_variants(data);
	test_zero();
	test_file(data, size);
	return done_testing();
}
