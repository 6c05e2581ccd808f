/*
 * device_memory REPORT MIB PER_CENT - hold MIB of random device memory, and tick.
 *
 * A loop launches a kernel that adds to one word and waits for it; the largest gap between two
 * such is a pause as the program itself sees it. When `dirty` in REPORT is set, PER_CENT of the
 * memory, in pieces of 64 KiB spread over all of it, is written once. Runs until it is killed.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/report.h"

#define PIECE (64ul << 10)

static void must(cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* Nothing a compressor or a search for equal blocks could use (splitmix64). */
__device__ uint64_t random_word(uint64_t i)
{
	uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

__global__ void fill(uint64_t *words, size_t count)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
		i += gridDim.x * (size_t)blockDim.x)
		words[i] = random_word(i);
}

/* One block writes one piece. */
__global__ void write_pieces(uint64_t *words, size_t distance)
{
	uint64_t *piece = words + blockIdx.x * distance;

	for (size_t i = threadIdx.x; i < PIECE / sizeof(*words); i += blockDim.x)
		piece[i] += 1;
}

__global__ void add(unsigned long long *word)
{
	++*word;
}

static void dirty(uint64_t *memory, size_t size, unsigned per_cent)
{
	size_t pieces = size / PIECE * per_cent / 100;

	if (!pieces)
		return;
	write_pieces<<<pieces, 256>>>(memory, size / PIECE / pieces * (PIECE / sizeof(*memory)));
	must(cudaDeviceSynchronize(), "writing");
}

static void tick(volatile struct report *report, uint64_t *memory, size_t size, unsigned per_cent)
{
	unsigned long long *word;
	uint64_t last = now();

	must(cudaMalloc(&word, sizeof(*word)), "cudaMalloc");
	for (;;) {
		add<<<1, 1>>>(word);
		must(cudaDeviceSynchronize(), "a kernel");
		uint64_t t = now();

		if (t - last > report->largest_gap)
			report->largest_gap = t - last;
		/* Not t: that may be from before a checkpoint. */
		if (!report->first_tick)
			report->first_tick = now();
		report->ticks++;
		last = t;
		if (report->dirty) {
			dirty(memory, size, per_cent);
			report->dirty = 0;
			last = now();
		}
	}
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: device_memory REPORT MIB PER_CENT\n");
		return 2;
	}
	int fd = open(argv[1], O_RDWR);
	size_t size = strtoull(argv[2], NULL, 10) << 20;
	void *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint64_t *memory;

	if (shared == MAP_FAILED) {
		perror(argv[1]);
		return 1;
	}
	close(fd);
	must(cudaMalloc(&memory, size), "cudaMalloc");
	fill<<<1024, 256>>>(memory, size / sizeof(*memory));
	must(cudaDeviceSynchronize(), "filling");
	volatile struct report *report = (struct report *)shared;

	report->ready = 1;
	tick(report, memory, size, atoi(argv[3]));
}
