/*
 * XXH3-128 of blocks of 4 KiB, as ckpt/hash.h has it, by four threads each: what the lower half
 * has a GPU do (block_hashes.c). mk/hash-kernel makes hash_kernel.ptx of it; t/unit/hash_kernel.c
 * compiles it for the processor.
 *
 * XXH3 keeps eight sums of 64 bits. Each stripe of 64 bytes adds to all of them, each pair of
 * sums by its own 16 bytes, so a thread has one pair, and reads nothing that another one does.
 * Sums of a thread meet those of others at the end of the block only.
 */
#define BLOCK_SIZE 4096
#define STRIPE     64
#define STRIPES    16 /* before the sums are scrambled */
#define LANES      4

#define PRIME32_1 0x9e3779b1u
#define PRIME32_2 0x85ebca77u
#define PRIME32_3 0xc2b2ae3du
#define PRIME64_1 0x9e3779b185ebca87ull
#define PRIME64_2 0xc2b2ae3d27d4eb4full
#define PRIME64_3 0x165667b19e3779f9ull
#define PRIME64_4 0x85ebca77c2b2ae63ull
#define PRIME64_5 0x27d4eb2f165667c5ull

#ifdef __CUDACC__
#define DEVICE     static __device__ __forceinline__
#define ALIGNED(n) __align__(n)
#define UNROLLED   _Pragma("unroll")
#else
#define DEVICE     static inline
#define ALIGNED(n) __attribute__((aligned(n)))
#define UNROLLED
#endif

#include "lower/cuda/hash_keys.h"

typedef unsigned long long word;

/* What a thread has of a stripe. */
struct ALIGNED(16) pair {
	word a, b;
};

DEVICE word low_by_high(word x)
{
	return (x & 0xffffffffu) * (x >> 32);
}

DEVICE word multiply_and_fold(word x, word y)
{
	unsigned __int128 product = (unsigned __int128)x * y;

	return (word)product ^ (word)(product >> 64);
}

/* Each word goes to the other sum as it is. */
DEVICE void add_stripe(struct pair *sum, struct pair data, word key_a, word key_b)
{
	sum->a += data.b + low_by_high(data.a ^ key_a);
	sum->b += data.a + low_by_high(data.b ^ key_b);
}

DEVICE word scramble(word sum, word key)
{
	return (sum ^ sum >> 47 ^ key) * PRIME32_1;
}

DEVICE struct pair first_sums(unsigned lane)
{
	struct pair sum;

	sum.a = lane == 0   ? PRIME32_3
		: lane == 1 ? PRIME64_2
		: lane == 2 ? PRIME64_4
			    : PRIME64_5;
	sum.b = lane == 0   ? PRIME64_1
		: lane == 1 ? PRIME64_3
		: lane == 2 ? PRIME32_2
			    : PRIME32_1;
	return sum;
}

/* The sums of @lane over the block at @data. */
DEVICE struct pair sum_block(const struct pair *data, unsigned lane, const struct hash_keys *keys)
{
	struct pair sum = first_sums(lane);

	data += lane;
	for (unsigned part = 0; part < BLOCK_SIZE / STRIPE / STRIPES - 1; part++) {
		UNROLLED
		for (unsigned i = 0; i < STRIPES; i++)
			add_stripe(&sum, data[i * LANES], keys->stripe[2 * lane + i],
				keys->stripe[2 * lane + i + 1]);
		sum.a = scramble(sum.a, keys->stripe[2 * lane + STRIPES]);
		sum.b = scramble(sum.b, keys->stripe[2 * lane + STRIPES + 1]);
		data += STRIPES * LANES;
	}
	/* The last stripe has other keys, and nothing is scrambled behind it. */
	UNROLLED
	for (unsigned i = 0; i < STRIPES - 1; i++)
		add_stripe(&sum, data[i * LANES], keys->stripe[2 * lane + i],
			keys->stripe[2 * lane + i + 1]);
	add_stripe(&sum, data[(STRIPES - 1) * LANES], keys->last[2 * lane],
		keys->last[2 * lane + 1]);
	return sum;
}

/* What @lane adds to one half of the hash. */
DEVICE word lane_part(struct pair sum, const word *key)
{
	return multiply_and_fold(sum.a ^ key[0], sum.b ^ key[1]);
}

DEVICE word avalanche(word h)
{
	h ^= h >> 37;
	h *= 0x165667919e3779f9ull;
	return h ^ h >> 32;
}

DEVICE word swap_bytes(word x)
{
	x = (x & 0x00ff00ff00ff00ffull) << 8 | (x >> 8 & 0x00ff00ff00ff00ffull);
	x = (x & 0x0000ffff0000ffffull) << 16 | (x >> 16 & 0x0000ffff0000ffffull);
	return x << 32 | x >> 32;
}

/* The hash as images have it, of the sums of what the lanes add to its halves. */
DEVICE struct pair finish_hash(word low, word high)
{
	struct pair hash;

	hash.a = swap_bytes(avalanche(~(BLOCK_SIZE * PRIME64_2) + high));
	hash.b = swap_bytes(avalanche(BLOCK_SIZE * PRIME64_1 + low));
	return hash;
}

#ifdef __CUDACC__
#define THREADS 128
#define GROUPS  (THREADS / LANES)

/* The hashes of @count blocks from @blocks on, to @hashes, which is memory of the host. A warp has
 * eight blocks at a time, in a row; where fewer are left, some hash the last one once more. */
extern "C" __global__ __launch_bounds__(THREADS) void trecr_hash_blocks(const struct pair *blocks,
	word count, struct pair *hashes, const __grid_constant__ struct hash_keys keys)
{
	unsigned lane = threadIdx.x % LANES;
	word first = blockIdx.x * (word)GROUPS + threadIdx.x / 32 * (32 / LANES);

	for (; first < count; first += gridDim.x * (word)GROUPS) {
		word own = first + threadIdx.x % 32 / LANES, n = own < count ? own : count - 1;
		struct pair sum = sum_block(blocks + n * (BLOCK_SIZE / sizeof(*blocks)), lane, &keys);
		word low = lane_part(sum, &keys.low[2 * lane]);
		word high = lane_part(sum, &keys.high[2 * lane]);

		for (unsigned distance = 1; distance < LANES; distance *= 2) {
			low += __shfl_xor_sync(0xffffffff, low, distance);
			high += __shfl_xor_sync(0xffffffff, high, distance);
		}
		if (!lane && own < count)
			hashes[own] = finish_hash(low, high);
	}
}
#endif
