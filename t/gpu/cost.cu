/* What calls cost, in nanoseconds each: for bench/turns. Launches and copies are measured until
 * the work is done, too. */
#include "bench/turns.h"
#include "t/gpu/gpu.h"

__global__ void nothing(void)
{
}

struct arguments {
	float values[32];
};

__global__ void with_arguments(float *to, int n, arguments a)
{
	if (n)
		to[0] = a.values[n];
}

static cudaStream_t stream;

static void launch_by_configuration(float *to)
{
	cudaLaunchConfig_t config = {};
	arguments a = {};
	int n = 0;
	void *params[] = {&to, &n, &a};

	config.gridDim = config.blockDim = dim3(1);
	config.stream = stream;
	OK(cudaLaunchKernelExC(&config, (const void *)with_arguments, params));
}

static void round_of_calls(float *memory, float *pinned, cudaEvent_t event)
{
	const int calls = 20000, launches = 5000, waits = 300;
	void *pooled;

	TURNS_EACH("cudaStreamQuery", calls, cudaStreamQuery(stream));
	TURNS_EACH("cudaEventRecord", launches, cudaEventRecord(event, stream));
	OK(cudaStreamSynchronize(stream));
	TURNS_EACH("launch", launches, (nothing<<<1, 1, 0, stream>>>()));
	OK(cudaStreamSynchronize(stream));
	TURNS_EACH("launch, 140 bytes of arguments", launches,
		(with_arguments<<<1, 1, 0, stream>>>(memory, 0, arguments())));
	OK(cudaStreamSynchronize(stream));
	TURNS_EACH("cudaLaunchKernelExC", launches, launch_by_configuration(memory));
	OK(cudaStreamSynchronize(stream));
	TURNS_EACH("launch and wait", waits, {
		nothing<<<1, 1, 0, stream>>>();
		cudaStreamSynchronize(stream);
	});
	TURNS_EACH("cudaMemcpyAsync, 4 KiB, pinned", waits * 5,
		cudaMemcpyAsync(memory, pinned, 4096, cudaMemcpyHostToDevice, stream));
	OK(cudaStreamSynchronize(stream));
	TURNS_EACH("cudaMallocAsync and cudaFreeAsync", launches, {
		cudaMallocAsync(&pooled, 4096, stream);
		cudaFreeAsync(pooled, stream);
	});
	OK(cudaStreamSynchronize(stream));
	OK(cudaGetLastError());
}

int main(void)
{
	float *memory, *pinned;
	cudaEvent_t event;

	OK(cudaStreamCreate(&stream));
	OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	OK(cudaMalloc(&memory, 4096));
	OK(cudaMallocHost(&pinned, 4096));
	while (turns_next()) {
		round_of_calls(memory, pinned, event);
		turns_done();
	}
	return 0;
}
