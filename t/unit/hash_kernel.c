/* What a GPU is given to hash blocks with (lower/cuda/hash_kernel.cu), compiled for the processor,
 * gives the hashes that images have. */
#include "lower/cuda/hash_kernel.cu"

#include "ckpt/hash.h"
#include "ckpt/image.h"
#include "lib/util.h"
#include "t/unit/tap.h"

_Static_assert(BLOCK_SIZE == IMAGE_BLOCK && sizeof(struct pair) == IMAGE_HASH_SIZE, "");

static struct hash_keys keys;
static struct pair block[BLOCK_SIZE / sizeof(struct pair)];

/* As the threads of one block do it together. */
static bool is_right(void)
{
	uint8_t want[IMAGE_HASH_SIZE];
	word low = 0, high = 0;
	struct pair hash;

	for (unsigned lane = 0; lane < LANES; lane++) {
		struct pair sum = sum_block(block, lane, &keys);

		low += lane_part(sum, &keys.low[2 * lane]);
		high += lane_part(sum, &keys.high[2 * lane]);
	}
	hash = finish_hash(low, high);
	hash128(block, sizeof(block), want);
	return !memcmp(&hash, want, sizeof(want));
}

static uint64_t random_state = 88172645463325252ull;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void fill_random(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(block); i++)
		block[i] = (struct pair){next_random(), next_random()};
}

static void test_bytes(void)
{
	bool right = true;

	for (int value = 0; value < 256; value++) {
		memset(block, value, sizeof(block));
		right &= is_right();
	}
	ok(right, "blocks of one byte, repeated");
}

static void test_bits(void)
{
	bool right = true;

	memset(block, 0, sizeof(block));
	for (size_t bit = 0; bit < sizeof(block) * 8; bit++) {
		uint8_t *byte = (uint8_t *)block + bit / 8;

		*byte ^= 1u << bit % 8;
		right &= is_right();
		*byte ^= 1u << bit % 8;
	}
	ok(right, "each single bit");
}

static void test_random(void)
{
	bool right = true;

	for (int i = 0; i < 20000; i++) {
		fill_random();
		right &= is_right();
	}
	ok(right, "20000 blocks of random bytes");
}

static void test_parts(void)
{
	bool right = true;

	for (size_t size = 0; size <= sizeof(block); size += 8) {
		fill_random();
		memset((uint8_t *)block + size, 0, sizeof(block) - size);
		right &= is_right();
		memset(block, 0xff, size);
		right &= is_right();
	}
	ok(right, "blocks of which any part is zero");
}

int main(void)
{
	hash_keys_make(&keys);
	test_bytes();
	test_bits();
	test_random();
	test_parts();
	return done_testing();
}
