/*
 * malloc - allocate and free blocks of many sizes; prints nanoseconds a pair.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/program.h"

#define PAIRS (20 * 1000 * 1000)
#define LIVE  1024

int main(void)
{
	static char *live[LIVE];
	uint32_t random = 1;
	double start = seconds();

	for (int i = 0; i < PAIRS; i++) {
		char **slot = &live[i % LIVE];

		free(*slot);
		random = random * 1664525 + 1013904223;
		/* Mostly small; one in 4096 large enough for mmap. */
		*slot = malloc(random >> 20 ? 16 + (random >> 20) % 1024 : 256 * 1024);
		if (!*slot)
			return 1;
		**slot = 1;
	}
	printf("%.2f\n", (seconds() - start) * 1e9 / PAIRS);
	return 0;
}
