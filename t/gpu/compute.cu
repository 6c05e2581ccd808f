/* What programs do with the runtime API: pinned and device memory, streams, module globals and
 * constants, host functions, device printf, properties, graphs. Prints results, so that a native
 * and a split run can be compared. */
#include <stdlib.h>

#include "t/gpu/gpu.h"

#define N      (1 << 20)
#define BLOCK  256
#define ROUNDS 1000

__device__ int grown = 7;
__constant__ int weights[4] = {1, 2, 3, 4};

__global__ void add(float *a, const float *b)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	a[i] = a[i] * 1.0001f + b[i] + grown * weights[i & 3];
}

__global__ void grow(void)
{
	grown++;
}

__global__ void sum(const float *a, double *result)
{
	__shared__ double part[BLOCK];
	double mine = 0;

	for (int i = threadIdx.x; i < N; i += BLOCK)
		mine += a[i];
	part[threadIdx.x] = mine;
	__syncthreads();
	for (int half = BLOCK / 2; half; half /= 2) {
		if (threadIdx.x < half)
			part[threadIdx.x] += part[threadIdx.x + half];
		__syncthreads();
	}
	if (!threadIdx.x)
		*result = part[0];
}

__global__ void hello(void)
{
	printf("hello %d\n", threadIdx.x);
}

static __thread int mine = 42;

static void count(void *calls)
{
	if (mine == 42 || mine == 0) /* the main thread's, or another thread's own */
		++*(int *)calls;
}

static void show_properties(void)
{
	cudaDeviceProp properties;
	size_t available, total;

	OK(cudaGetDeviceProperties(&properties, 0));
	OK(cudaMemGetInfo(&available, &total));
	printf("%s, %zu\n", properties.name, total);
}

static void run_graph(cudaStream_t stream, float *a, const float *b)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	add<<<N / BLOCK, BLOCK, 0, stream>>>(a, b);
	grow<<<1, 1, 0, stream>>>();
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 10; i++)
		OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(graph));
}

static void show_sum(cudaStream_t stream, const float *a)
{
	double *result, host;

	OK(cudaMallocAsync(&result, sizeof(*result), stream));
	sum<<<1, BLOCK, 0, stream>>>(a, result);
	OK(cudaMemcpyAsync(&host, result, sizeof(host), cudaMemcpyDeviceToHost, stream));
	OK(cudaFreeAsync(result, stream));
	OK(cudaStreamSynchronize(stream));
	printf("sum %.17g\n", host);
}

int main(void)
{
	float *a, *b, *pinned;
	cudaStream_t stream;
	int calls = 0;
	void *huge;

	OK(cudaMalloc(&a, N * sizeof(*a)));
	OK(cudaMalloc(&b, N * sizeof(*b)));
	OK(cudaMallocHost(&pinned, N * sizeof(*pinned)));
	OK(cudaStreamCreate(&stream));
	for (int i = 0; i < N; i++)
		pinned[i] = i * 1e-6f;
	OK(cudaMemcpyAsync(a, pinned, N * sizeof(*a), cudaMemcpyHostToDevice, stream));
	OK(cudaMemcpyAsync(b, pinned, N * sizeof(*b), cudaMemcpyHostToDevice, stream));
	for (int i = 0; i < ROUNDS; i++) {
		add<<<N / BLOCK, BLOCK, 0, stream>>>(a, b);
		if (i % 100)
			continue;
		grow<<<1, 1, 0, stream>>>();
		OK(cudaLaunchHostFunc(stream, count, &calls));
	}
	show_sum(stream, a);
	printf("calls %d\n", calls);
	hello<<<1, 2, 0, stream>>>();
	OK(cudaDeviceSynchronize());
	show_properties();
	run_graph(stream, a, b);
	show_sum(stream, a);
	printf("too much: %s\n", cudaGetErrorName(cudaMalloc(&huge, (size_t)1 << 50)));
	printf("no such device: %s\n", cudaGetErrorName(cudaSetDevice(99)));
	return 0;
}
