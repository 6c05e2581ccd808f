/* Memory, modules, kernels, streams and events from several threads, each with data of its own
 * in the driver; and errors the driver gives. */
#include <pthread.h>

#include "t/split/setup.h"

#define N       4096
#define THREADS 8

static void *count, *scale;
static __thread int mine = 42;

static void *work(void *argument)
{
	uint64_t seed = (uint64_t)argument;
	uint32_t host[N];
	CUdeviceptr memory;
	void *stream, *event, *before;

	OK(cuCtxGetCurrent(&before));
	CHECK(!before);
	CHECK_RESULT(cuMemAlloc_v2(&memory, 16), 201);
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, 0));
	OK(cuEventCreate(&event, 0));
	OK(cuMemAlloc_v2(&memory, sizeof(host)));
	for (int round = 0; round < 50; round++) {
		char *heap = malloc(100 + round * 1000);

		memset(heap, 1, 100);
		OK(launch(count, N, memory, seed + round, 0, stream));
		OK(launch(scale, N, memory, 3, 5, stream));
		OK(cuEventRecord(event, stream));
		OK(cuEventSynchronize(event));
		memset(host, 0, sizeof(host));
		OK(cuMemcpyDtoHAsync_v2(host, memory, sizeof(host), stream));
		OK(cuStreamSynchronize(stream));
		for (int i = 0; i < N; i++)
			CHECK(host[i] == (uint32_t)(seed + round + i) * 3 + 5);
		free(heap);
		CHECK(mine == 42);
	}
	OK(cuMemFree_v2(memory));
	OK(cuEventDestroy_v2(event));
	OK(cuStreamDestroy_v2(stream));
	return NULL;
}

static void errors(void)
{
	size_t available, total;
	CUdeviceptr large, start;
	void *stream, *current;

	OK(cuMemGetInfo_v2(&available, &total));
	CHECK_RESULT(cuMemAlloc_v2(&large, total + 1), 2);
	CHECK_RESULT(cuMemAlloc_v2(&large, 0), 1);
	OK(cuMemAlloc_v2(&large, total / 2));
	CHECK_RESULT(cuMemAlloc_v2(&start, total / 2 + 512), 2);
	OK(cuMemGetAddressRange_v2(&start, &total, large + 1000));
	CHECK(start == large);
	OK(cuMemFree_v2(large));
	CHECK_RESULT(cuMemFree_v2(large), 1);
	OK(cuStreamCreate(&stream, 0));
	OK(cuStreamDestroy_v2(stream));
	CHECK_RESULT(cuStreamDestroy_v2(stream), 400);
	OK(cuCtxGetCurrent(&current));
	CHECK(current == context);
}

int main(void)
{
	pthread_t threads[THREADS];
	int version = 0;

	OK(cuDriverGetVersion(&version));
	CHECK(version == 13000);
	CHECK_RESULT(cuDeviceGetCount(&version), 3);
	set_up();
	count = kernel("count");
	scale = kernel("scale");
	for (uint64_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)(i * 1000));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	errors();
	printf("done\n");
	return wrong != 0;
}
