/*
 * managed ROUNDS: managed memory that kernels and the host change in turn, with pointers to it in
 * itself, and advice about some of it. Prints hashes that do not depend on when it is checkpointed.
 */
#include <stdint.h>

#include "t/gpu/gpu.h"

#define PARTS 3
#define BLOCK 256

struct part {
	part *next;
	uint32_t count;
	uint32_t words[];
};

__global__ void change(part *first, uint32_t round)
{
	uint32_t i = blockIdx.x * BLOCK + threadIdx.x;

	for (part *p = first; p; p = p->next)
		for (uint32_t j = i; j < p->count; j += gridDim.x * BLOCK)
			p->words[j] = p->words[j] * 1664525u + j + round;
}

static uint32_t hash(const part *first)
{
	uint32_t h = 0;

	for (const part *p = first; p; p = p->next)
		for (uint32_t i = 0; i < p->count; i++)
			h = h * 31 + p->words[i];
	return h;
}

static cudaMemLocation device(int id)
{
	cudaMemLocation l = {};

	l.type = cudaMemLocationTypeDevice;
	l.id = id;
	return l;
}

/* What is taken back again leaves nothing. */
static void advise(part *p, size_t size)
{
	OK(cudaMemAdvise(p, size, cudaMemAdviseSetReadMostly, device(0)));
	OK(cudaMemAdvise(p, size, cudaMemAdviseUnsetReadMostly, device(0)));
	OK(cudaMemAdvise(p, size, cudaMemAdviseSetPreferredLocation, device(0)));
}

static int place(const part *p)
{
	int where = -3;

	OK(cudaMemRangeGetAttribute(
		&where, sizeof(where), cudaMemRangeAttributePreferredLocation, p, 4096));
	return where;
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc > 1 ? atoi(argv[1]) : 1000;
	const size_t sizes[PARTS] = {5000, 3 << 20, 40 << 20};
	part *first = NULL, *p;

	for (int i = 0; i < PARTS; i++) {
		OK(cudaMallocManaged(&p, sizes[i]));
		p->next = first;
		p->count = (sizes[i] - sizeof(*p)) / 4;
		for (uint32_t j = 0; j < p->count; j++)
			p->words[j] = j * i;
		first = p;
		if (i == 1)
			advise(p, sizes[i]);
	}
	for (uint32_t round = 0; round < rounds; round++) {
		change<<<64, BLOCK>>>(first, round);
		if (round % 50)
			continue;
		OK(cudaDeviceSynchronize());
		first->words[round % first->count]++;
		if (round % (rounds / 20))
			continue;
		printf("round %u: %08x, %d %d\n", round, hash(first), place(first),
			place(first->next));
		fflush(stdout);
	}
	OK(cudaDeviceSynchronize());
	printf("end: %08x\n", hash(first));
	return 0;
}
