"""Kernels of CuPy's: written as source, element by element, fused, with a variable of the module."""
import cupy
from common import end, show, steps

SOURCE = r"""
__device__ unsigned long long runs;
__device__ unsigned int table[4096];
extern "C" __global__ void stir(unsigned int *a, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		a[i] = a[i] * 1664525u + 1013904223u + table[i % 4096] + (unsigned int)runs;
}
/* 4096 threads, one for each element. */
extern "C" __global__ void count(void)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	table[i] = table[i] * 5 + i;
	if (!i)
		runs++;
}
"""
module = cupy.RawModule(code=SOURCE, backend="nvrtc")
stir, count = module.get_function("stir"), module.get_function("count")
mix = cupy.ElementwiseKernel("uint32 x, uint32 y", "uint32 z", "z = x ^ (y >> 3)", "mix")
# Whole numbers: it adds them up in any order.
fold = cupy.ReductionKernel("uint32 x", "uint64 y", "x * (unsigned long long)x", "a + b", "y = a", "0", "fold")
a = cupy.arange(1 << 20, dtype=cupy.uint32)
for step in steps():
    for _ in range(50):
        stir(((a.size + 255) // 256,), (256,), (a, a.size))
        count((16,), (256,), ())
    a = mix(a, cupy.roll(a, step))
    show(step, a, int(fold(a)))
end(a)
