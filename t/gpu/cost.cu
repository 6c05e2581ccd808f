/* Nanoseconds: of a call that does next to nothing below, of a launch, and of a launch with the
 * wait for its end. */
#include <time.h>

#include "t/gpu/gpu.h"

__global__ void nothing(void)
{
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(void)
{
	const int calls = 1000000, launches = 100000, waits = 5000;
	double start, call, launch, wait;
	cudaStream_t stream;

	OK(cudaStreamCreate(&stream));
	nothing<<<1, 1, 0, stream>>>();
	OK(cudaStreamSynchronize(stream));
	start = now();
	for (int i = 0; i < calls; i++)
		cudaStreamQuery(stream);
	call = (now() - start) / calls;
	start = now();
	for (int i = 0; i < launches; i++)
		nothing<<<1, 1, 0, stream>>>();
	OK(cudaStreamSynchronize(stream));
	launch = (now() - start) / launches;
	start = now();
	for (int i = 0; i < waits; i++) {
		nothing<<<1, 1, 0, stream>>>();
		OK(cudaStreamSynchronize(stream));
	}
	wait = (now() - start) / waits;
	printf("cudaStreamQuery %.1f\nlaunch %.1f\nlaunch-and-wait %.1f\n", call, launch, wait);
	return 0;
}
