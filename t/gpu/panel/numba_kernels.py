"""Numba: kernels with shared memory, streams, pinned memory and random numbers."""
import numpy

if not hasattr(numpy, "row_stack"):  # gone in NumPy 2.5; some versions of Numba name it still
    numpy.row_stack = numpy.vstack
from numba import cuda, float32
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32
from common import end, show, steps

TILE = 16


@cuda.jit
def multiply(a, b, c):
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.grid(2)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for k in range(a.shape[1] // TILE):
        left[i, j] = a[x, k * TILE + j]
        right[i, j] = b[k * TILE + i, y]
        cuda.syncthreads()
        for m in range(TILE):
            total += left[i, m] * right[m, j]
        cuda.syncthreads()
    c[x, y] = total


@cuda.jit
def noise(states, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = xoroshiro128p_uniform_float32(states, i) - 0.5


n = 512
stream = cuda.stream()
states = create_xoroshiro128p_states(n * n, seed=1)
pinned = cuda.pinned_array((n, n), numpy.float32)
a, b, c = (cuda.device_array((n, n), numpy.float32) for _ in range(3))
for step in steps():
    for target in (a, b):
        noise[n * n // 256, 256, stream](states, target.reshape(n * n))
    multiply[(n // TILE, n // TILE), (TILE, TILE), stream](a, b, c)
    c.copy_to_host(pinned, stream=stream)
    stream.synchronize()
    show(step, numpy.array(pinned))
end(a, b, c)
