/*
 * numbers ROUNDS: products of matrices, sums over an array, a kernel whose blocks wait for each
 * other (cooperative launch), and printf in a kernel. Prints hashes that do not depend on when
 * it is checkpointed.
 */
#include <cooperative_groups.h>
#include <stdint.h>
#include <string.h>

#include "t/gpu/gpu.h"

#define SIZE  512 /* of a matrix */
#define TILE  16
#define N     (SIZE * SIZE)
#define BLOCK 256

__global__ void product(float *c, const float *a, const float *b)
{
	__shared__ float left[TILE][TILE], right[TILE][TILE];
	int x = threadIdx.x, y = threadIdx.y;
	int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
	float sum = 0;

	for (int k = 0; k < SIZE; k += TILE) {
		left[y][x] = a[row * SIZE + k + x];
		right[y][x] = b[(k + y) * SIZE + column];
		__syncthreads();
		for (int i = 0; i < TILE; i++)
			sum += left[y][i] * right[i][x];
		__syncthreads();
	}
	c[row * SIZE + column] = sum / (1 + fabsf(sum));
}

__global__ void sum_blocks(const float *a, float *sums)
{
	__shared__ float part[BLOCK];
	int i = threadIdx.x;

	part[i] = a[blockIdx.x * BLOCK + i];
	for (int n = BLOCK / 2; n; n /= 2) {
		__syncthreads();
		if (i < n)
			part[i] += part[i + n];
	}
	if (!i)
		sums[blockIdx.x] = part[0];
}

/* Each step needs what all blocks did in the one before. */
__global__ void steps(uint32_t *one, uint32_t *two, int count)
{
	cooperative_groups::grid_group grid = cooperative_groups::this_grid();
	uint32_t n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;

	for (int step = 0; step < count; step++) {
		uint32_t *from = step % 2 ? two : one, *to = step % 2 ? one : two;

		to[i] = from[i] * 1664525u + from[(i * 7 + step) % n] + i;
		grid.sync();
	}
}

__global__ void say(int round, const float *sums, const uint32_t *steps)
{
	float sum = 0;

	for (int i = 0; i < N / BLOCK; i++)
		sum += sums[i];
	printf("round %d: sum %08x, steps %08x\n", round, __float_as_uint(sum), steps[round % BLOCK]);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000, count = 20, blocks = 64;
	dim3 tiles(SIZE / TILE, SIZE / TILE), tile(TILE, TILE);
	float *a, *b, *c, *sums, *host = (float *)malloc(N * 4);
	uint32_t *one, *two;
	void *arguments[] = {&one, &two, &count};

	OK(cudaMalloc(&a, N * 4));
	OK(cudaMalloc(&b, N * 4));
	OK(cudaMalloc(&c, N * 4));
	OK(cudaMalloc(&sums, N / BLOCK * 4));
	OK(cudaMalloc(&one, blocks * BLOCK * 4));
	OK(cudaMalloc(&two, blocks * BLOCK * 4));
	OK(cudaMemset(one, 3, blocks * BLOCK * 4));
	for (int i = 0; i < N; i++)
		host[i] = (i * 2654435761u % 2000) / 1000.0f - 1;
	OK(cudaMemcpy(a, host, N * 4, cudaMemcpyHostToDevice));
	OK(cudaMemcpy(b, host, N * 4, cudaMemcpyHostToDevice));
	for (int round = 0; round < rounds; round++) {
		product<<<tiles, tile>>>(c, a, b);
		sum_blocks<<<N / BLOCK, BLOCK>>>(c, sums);
		OK(cudaLaunchCooperativeKernel(
			(void *)steps, dim3(blocks), dim3(BLOCK), arguments, 0, NULL));
		float *t = a;
		a = c;
		c = t;
		if (round % (rounds / 20))
			continue;
		/* What a kernel prints comes out when it is waited for, a checkpoint or not; and, by a
		 * thread of the driver's own, when nobody waits for some tenths of a second. */
		printf("after this comes round %d:\n", round);
		fflush(stdout);
		say<<<1, 1>>>(round, sums, one);
		OK(cudaDeviceSynchronize());
		fflush(stdout);
	}
	OK(cudaMemcpy(host, a, N * 4, cudaMemcpyDeviceToHost));
	uint32_t hash = 0;
	for (int i = 0; i < N; i++) {
		uint32_t word;

		memcpy(&word, &host[i], 4);
		hash = hash * 31 + word;
	}
	printf("end: %08x\n", hash);
	return 0;
}
