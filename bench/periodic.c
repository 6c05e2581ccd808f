/*
 * periodic MIB PERCENT SECONDS - work beside checkpoints at an interval, and tell how much has been done.
 *
 * Of MIB of random memory PERCENT per cent of the pages are written to in each second, in steps of 10 ms; in between it
 * computes, in its registers. Prints thousands of rounds of that in a second of time and in a second of its own
 * processor time, and the longest time, in ms, between two readings of the clock, which it reads after each round.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE_WORDS ((size_t)512)
#define STEPS      100 /* a second */
#define SECOND     1000000000ull

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: periodic MIB PERCENT SECONDS\n");
		return 2;
	}
	size_t size = strtoull(argv[1], NULL, 10) << 20, pages = size / (PAGE_WORDS * 8);
	size_t pages_in_step = pages * strtoull(argv[2], NULL, 10) / 100 / STEPS;
	uint64_t *memory =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t state = 1, rounds = 0, longest = 0, steps = 0;

	if (memory == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	for (size_t i = 0; i < size / 8; i++)
		memory[i] = next_random(&state);

	uint64_t start = read_clock(CLOCK_MONOTONIC), last = start, now;
	uint64_t own_start = read_clock(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t end = start + strtoull(argv[3], NULL, 10) * SECOND;
	size_t page = 0;

	do {
		for (int i = 0; i < 1000; i++)
			next_random(&state);
		rounds++;
		now = read_clock(CLOCK_MONOTONIC);
		if (now - last > longest)
			longest = now - last;
		last = now;
		/* Evenly over all memory. After a stop, what has been missed is not made up for. */
		if ((now - start) * STEPS / SECOND > steps) {
			steps = (now - start) * STEPS / SECOND;
			for (size_t i = 0; i < pages_in_step; i++, page = (page + 7919) % pages)
				memory[page * PAGE_WORDS] = next_random(&state);
		}
	} while (now < end);

	double own = read_clock(CLOCK_PROCESS_CPUTIME_ID) - own_start;

	memory[0] = state;
	printf("%.1f %.1f %.2f\n", rounds * 1e6 / (now - start), rounds * 1e6 / own,
		longest / 1e6);
	return 0;
}
