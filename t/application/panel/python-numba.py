# Packages: numba (PyPI). Needs: python3:numba
# Machine code that is compiled while the program runs, some of it after the restart.
import os
import numba
import numpy


@numba.njit(parallel=True)
def grid(n):
    a = numpy.zeros((n, n))
    for i in numba.prange(n):
        for j in range(n):
            a[i, j] = (i * j) % 17
    return a.sum()


@numba.njit
def mandelbrot(n):
    total = 0
    for i in range(n):
        z, c = 0j, complex(-2 + 3 * i / n, 0.4)
        for _ in range(100):
            if abs(z) < 2:
                z = z * z + c
                total += 1
    return total


@numba.vectorize
def late(x, y):
    return x * 3 + y


first = grid(500), mandelbrot(5000)
print("ready", flush=True)
while not os.path.exists("go"):
    assert (grid(500), mandelbrot(5000)) == first
print(first, late(numpy.arange(10.0), 2).sum(), mandelbrot(7.0))
