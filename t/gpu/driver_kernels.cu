/* Kernels of driver.c. */
extern "C" __device__ unsigned counter = 3;

extern "C" __global__ void mix(unsigned *a, unsigned round)
{
	extern __shared__ unsigned shared[];
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	shared[threadIdx.x] = a[i];
	__syncthreads();
	a[i] = shared[threadIdx.x ^ 1] * 1664525u + counter + round;
}

extern "C" __global__ void count(const unsigned *a)
{
	counter = counter * 5 + a[0];
}
