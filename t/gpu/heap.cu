/* heap: holds memory that a kernel has allocated, and looks at it again when asked to. */
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "t/gpu/gpu.h"

__device__ uint32_t *held;

__device__ __noinline__ void *get(size_t size)
{
	return malloc(size);
}

__global__ void take(uint32_t n)
{
	held = (uint32_t *)get(n * 4);
	for (uint32_t i = 0; held && i < n; i++)
		held[i] = i;
}

__global__ void look(uint32_t n, uint32_t *sum)
{
	for (uint32_t i = 0; held && i < n; i++)
		*sum += held[i];
}

static volatile sig_atomic_t asked;

static void ask(int signal)
{
	asked = 1;
}

int main(void)
{
	uint32_t *sum, host = 0;

	signal(SIGUSR1, ask);
	OK(cudaMalloc(&sum, 4));
	OK(cudaMemset(sum, 0, 4));
	take<<<1, 1>>>(1000);
	OK(cudaDeviceSynchronize());
	puts("ready");
	fflush(stdout);
	while (!asked)
		usleep(1000);
	look<<<1, 1>>>(1000, sum);
	OK(cudaMemcpy(&host, sum, 4, cudaMemcpyDeviceToHost));
	puts(host == 499500 ? "ok" : "wrong");
	return host != 499500;
}
