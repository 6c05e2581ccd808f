"""cuFFT through CuPy: sizes that are odd, prime and large, real and complex, in one to three dimensions."""
import cupy
from common import end, show, steps

SHAPES = [(1009,), (4096,), (3 * 5 * 7 * 11,), (65537,), (1 << 20,), (17, 31), (127, 255), (12, 35, 49), (640, 480)]
random = cupy.random.RandomState(1)
for step in steps():
    shape = SHAPES[step % len(SHAPES)]
    a = random.standard_normal(shape, dtype=cupy.float32 if step % 2 else cupy.float64)
    b = cupy.fft.fftn(a)
    c = cupy.fft.irfftn(cupy.fft.rfftn(a), s=shape)
    show(step, b, c, cupy.fft.ifftn(b))
end(c)
