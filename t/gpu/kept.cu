/*
 * kept ROUNDS: what has no handle, in use the whole time while it is checkpointed and restarted:
 * variables that the program never asks for, managed and in functions, of one module in two
 * contexts, managed memory beside them; settings, numbers and names that the driver gives. Prints
 * what does not depend on when.
 */
#include <cuda.h>
#include <stdint.h>
#include <string.h>

#include "t/gpu/gpu.h"

#define DRIVER(call)                                                                           \
	do {                                                                                   \
		CUresult result_ = (call);                                                     \
		if (result_) {                                                                 \
			printf("%s: error %d\n", #call, result_);                              \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

#define LARGE (12u << 20)

__managed__ uint32_t with_host = 5;
static __constant__ uint32_t factor = 3;

__device__ uint32_t *place()
{
	static __device__ uint32_t inside = 17;

	return &inside;
}

__global__ void step(uint32_t *out)
{
	uint32_t *p = place();

	*p = *p * 1664525u + factor;
	*out = *p;
}

__global__ void step_managed(uint32_t *small, uint32_t *large)
{
	with_host = with_host * 22695477u + 1;
	*small += with_host;
	large[LARGE - 1] ^= *small;
}

struct context {
	CUcontext handle;
	CUstream stream;
	uint32_t *out;
	unsigned long long number, stream_number, default_number;
};

static void open_context(struct context *c)
{
	DRIVER(cuCtxSetCurrent(c->handle));
	OK(cudaMalloc(&c->out, 4));
	DRIVER(cuStreamCreate(&c->stream, CU_STREAM_NON_BLOCKING));
	DRIVER(cuCtxGetId(c->handle, &c->number));
	DRIVER(cuStreamGetId(c->stream, &c->stream_number));
	DRIVER(cuStreamGetId(NULL, &c->default_number));
}

static uint32_t advance(struct context *c)
{
	uint32_t value;

	DRIVER(cuCtxSetCurrent(c->handle));
	step<<<1, 1, 0, c->stream>>>(c->out);
	OK(cudaGetLastError());
	OK(cudaStreamSynchronize(c->stream));
	OK(cudaMemcpy(&value, c->out, 4, cudaMemcpyDeviceToHost));
	return value;
}

static int has_changed(struct context *c)
{
	unsigned long long number, stream, none;

	DRIVER(cuCtxSetCurrent(c->handle));
	DRIVER(cuCtxGetId(c->handle, &number));
	DRIVER(cuStreamGetId(c->stream, &stream));
	DRIVER(cuStreamGetId(NULL, &none));
	return number != c->number || stream != c->stream_number || none != c->default_number;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1000;
	struct context contexts[2] = {};
	CUfunc_cache cache;
	cudaFunction_t function;
	uint32_t hash = 0;
	uint32_t *small, *large;
	const char *name;
	CUdevice device;

	OK(cudaFree(NULL));
	DRIVER(cuCtxGetCurrent(&contexts[0].handle));
	DRIVER(cuDeviceGet(&device, 0));
	DRIVER(cuCtxCreate(&contexts[1].handle, NULL, CU_CTX_SCHED_YIELD, device));
	OK(cudaMallocManaged(&small, 4));
	OK(cudaMallocManaged(&large, LARGE * sizeof(*large)));
	*small = large[LARGE - 1] = 9;
	for (struct context &c : contexts)
		open_context(&c);
	DRIVER(cuCtxSetCurrent(contexts[0].handle));
	DRIVER(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
	OK(cudaGetFuncBySymbol(&function, (const void *)step));
	DRIVER(cuFuncGetName(&name, function));
	for (int round = 0; round < rounds; round++) {
		uint32_t a = advance(&contexts[0]), b = advance(&contexts[1]);

		if (round % 3 == 0) /* so that the two differ */
			b = advance(&contexts[1]);
		DRIVER(cuCtxSetCurrent(contexts[0].handle));
		step_managed<<<1, 1, 0, contexts[0].stream>>>(small, large);
		OK(cudaStreamSynchronize(contexts[0].stream));
		with_host += round;
		hash = hash * 31 + a + b * 7 + with_host + large[LARGE - 1];
		if (round % (rounds / 20))
			continue;
		DRIVER(cuCtxGetCacheConfig(&cache));
		printf("round %d: %08x, of %s, %d, numbers %s\n", round, hash, name,
			cache,
			has_changed(&contexts[0]) || has_changed(&contexts[1]) ? "differ"
									       : "are kept");
		fflush(stdout);
	}
	printf("end: %08x\n", hash);
	return 0;
}
