/*
 * state ROUNDS: everything that a program may have on a device, in use the whole time while it is
 * checkpointed and restarted: a list whose nodes point to each other, functions by address,
 * variables and constants, streams that wait for each other's events, pinned memory in flight,
 * pooled memory, host functions, and kernels that are first used in the middle. Prints hashes that
 * do not depend on when.
 */
#include <stdint.h>
#include <unistd.h>

#include "t/gpu/gpu.h"

#define N     (1 << 16)
#define NODES 1000
#define BLOCK 256

typedef uint32_t (*step_function)(uint32_t);

struct node {
	struct node *next;
	step_function step;
	uint32_t value;
};

__device__ uint32_t rounds_done = 7;
static __device__ uint32_t never_asked_for = 11;
__device__ uint32_t table_of[4096];
__constant__ uint32_t weights[4] = {1, 2, 3, 4};

__device__ __noinline__ uint32_t step_a(uint32_t x)
{
	return x * 1664525u + 1013904223u;
}

__device__ __noinline__ uint32_t step_b(uint32_t x)
{
	return (x ^ x >> 15) * 2246822519u;
}

__global__ void make_list(struct node *nodes)
{
	for (int i = 0; i < NODES; i++) {
		nodes[i].next = i + 1 < NODES ? &nodes[(i * 7 + 1) % NODES] : NULL;
		nodes[i].step = i % 3 ? step_a : step_b;
		nodes[i].value = i;
	}
}

__global__ void walk(struct node *nodes, uint32_t *sum)
{
	struct node *n = nodes;

	for (int i = 0; n && i < NODES; i++, n = n->next) {
		n->value = n->step(n->value);
		*sum += n->value;
	}
	rounds_done++;
	never_asked_for += rounds_done * weights[rounds_done & 3];
	table_of[rounds_done % 4096] ^= never_asked_for;
}

__global__ void mix(uint32_t *a, const uint32_t *b, uint32_t round)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	a[i] = a[i] * 1664525u + b[(i + round) % N] * weights[i & 3] + table_of[i % 4096];
}

template <int WHICH> __global__ void late(uint32_t *a)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	a[i] = step_b(a[i] + WHICH) + never_asked_for;
}

__global__ void hash(const uint32_t *a, const uint32_t *sum, uint32_t *result)
{
	uint32_t h = *sum + never_asked_for;

	for (int i = 0; i < N; i++)
		h = h * 31 + a[i];
	*result = h;
}

static void count(void *calls)
{
	++*(uint32_t *)calls;
}

/* Kernels of their own, so that one is loaded at another time. */
static void run_late(int which, uint32_t *a, cudaStream_t stream)
{
	switch (which) {
	case 0:
		late<0><<<N / BLOCK, BLOCK, 0, stream>>>(a);
		break;
	case 1:
		late<1><<<N / BLOCK, BLOCK, 0, stream>>>(a);
		break;
	case 2:
		late<2><<<N / BLOCK, BLOCK, 0, stream>>>(a);
		break;
	case 3:
		late<3><<<N / BLOCK, BLOCK, 0, stream>>>(a);
		break;
	}
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	uint32_t *a, *b, *sum, *result, *pinned, calls = 0, host, set[4] = {4, 3, 2, 1};
	cudaStream_t one, two;
	cudaEvent_t event, begin, end;
	struct node *nodes;
	float ms;

	OK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
	OK(cudaStreamCreate(&two));
	OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	OK(cudaEventCreate(&begin));
	OK(cudaEventCreate(&end));
	OK(cudaMalloc(&a, N * 4));
	OK(cudaMalloc(&b, N * 4));
	OK(cudaMalloc(&sum, 4));
	OK(cudaMalloc(&result, 4));
	OK(cudaMalloc(&nodes, NODES * sizeof(*nodes)));
	OK(cudaMallocHost(&pinned, N * 4));
	OK(cudaMemset(a, 1, N * 4));
	OK(cudaMemset(sum, 0, 4));
	OK(cudaMemcpyToSymbol(weights, set, sizeof(set)));
	make_list<<<1, 1, 0, two>>>(nodes);
	OK(cudaDeviceSynchronize()); /* stream one does not wait for any of this */
	for (int i = 0; i < N; i++)
		pinned[i] = i * 2654435761u;
	OK(cudaEventRecord(begin, one));
	for (int round = 0; round < rounds; round++) {
		uint32_t *pooled;

		OK(cudaMemcpyAsync(b, pinned, N * 4, cudaMemcpyHostToDevice, one));
		OK(cudaMallocAsync(&pooled, N * 4, one));
		OK(cudaMemcpyAsync(pooled, a, N * 4, cudaMemcpyDeviceToDevice, one));
		mix<<<N / BLOCK, BLOCK, 0, one>>>(a, pooled, round);
		mix<<<N / BLOCK, BLOCK, 0, one>>>(a, b, round);
		OK(cudaFreeAsync(pooled, one));
		OK(cudaEventRecord(event, one));
		OK(cudaStreamWaitEvent(two, event, 0));
		walk<<<1, 1, 0, two>>>(nodes, sum);
		OK(cudaEventRecord(event, two));
		OK(cudaStreamWaitEvent(one, event, 0));
		if (round % (rounds / 4 + 1) == rounds / 8)
			run_late(round / (rounds / 4 + 1), a, one);
		OK(cudaMemcpyAsync(pinned, a, N * 4, cudaMemcpyDeviceToHost, one));
		if (round % 16 == 0)
			OK(cudaLaunchHostFunc(one, count, &calls));
		if (round % (rounds / 8 + 1))
			continue;
		hash<<<1, 1, 0, one>>>(a, sum, result);
		OK(cudaMemcpyAsync(&host, result, 4, cudaMemcpyDeviceToHost, one));
		OK(cudaStreamSynchronize(one));
		printf("round %d: %08x\n", round, host);
		fflush(stdout);
	}
	OK(cudaEventRecord(end, one));
	OK(cudaDeviceSynchronize());
	OK(cudaEventElapsedTime(&ms, begin, end));
	hash<<<1, 1, 0, one>>>(a, sum, result);
	/* What follows does not wait for a stream that is not blocking. */
	OK(cudaStreamSynchronize(one));
	OK(cudaMemcpy(&host, result, 4, cudaMemcpyDeviceToHost));
	printf("end: %08x, %u calls, time went %s\n", host, calls, ms > 0 ? "on" : "back");
	OK(cudaMemcpyFromSymbol(&host, rounds_done, 4));
	printf("rounds %u\n", host);
	return 0;
}
