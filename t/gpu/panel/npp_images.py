"""NPP: images and signals are filtered, resized, combined and summed up, on a stream of their own."""
from ctypes import Structure, byref, c_int, c_size_t, c_uint, c_void_p

import cupy
from common import end, show, steps
from toolkit import library, must

WIDTH, HEIGHT = 1024, 768
LINEAR, FIVE_BY_FIVE, BOTH_AXES = 2, 201, 2


class Size(Structure):
    _fields_ = [("width", c_int), ("height", c_int)]


class Rect(Structure):
    _fields_ = [("x", c_int), ("y", c_int), ("width", c_int), ("height", c_int)]


class StreamContext(Structure):
    _fields_ = [("stream", c_void_p), ("device", c_int), ("processors", c_int), ("threads", c_int),
                ("block_threads", c_int), ("shared", c_size_t), ("major", c_int), ("minor", c_int),
                ("flags", c_uint), ("reserved", c_uint)]


core = library("libnppc")
logic, colour, filters, geometry, statistics, transposition, signals = (
    library("libnpp" + part) for part in ("ial", "icc", "if", "ig", "ist", "idei", "s"))
stream = cupy.cuda.Stream(non_blocking=True)
device = cupy.cuda.Device()
a = device.attributes
context = StreamContext(stream.ptr, device.id, a["MultiProcessorCount"], a["MaxThreadsPerMultiProcessor"],
                        a["MaxThreadsPerBlock"], a["MaxSharedMemoryPerBlock"], *divmod(int(device.compute_capability), 10),
                        1, 0)


def at(image):
    """An image as NPP's functions take it: its address, and the bytes of a line."""
    return c_void_p(image.data.ptr), c_int(image.strides[0])


full, half, inner = Size(WIDTH, HEIGHT), Size(WIDTH // 2, HEIGHT // 2), Size(WIDTH - 4, HEIGHT - 4)
whole, small = Rect(0, 0, WIDTH, HEIGHT), Rect(0, 0, WIDTH // 2, HEIGHT // 2)
with stream:
    random = cupy.random.RandomState(1)
    rgb = random.randint(0, 256, (HEIGHT, WIDTH, 3), dtype=cupy.uint8)
    grey, blurred, mirrored, sum_ = (cupy.zeros((HEIGHT, WIDTH), cupy.uint8) for _ in range(4))
    resized = cupy.zeros((HEIGHT // 2, WIDTH // 2), cupy.uint8)
    turned = cupy.zeros((WIDTH // 2, HEIGHT // 2), cupy.uint8)
    signal, roots = (cupy.zeros(WIDTH * HEIGHT // 4, cupy.float32) for _ in range(2))
    total, signal_total = cupy.zeros(1, cupy.float64), cupy.zeros(1, cupy.float32)
    need, signal_need = c_size_t(0), c_size_t(0)
    must(statistics.nppiSumGetBufferHostSize_8u_C1R_Ctx(full, byref(need), context))
    must(signals.nppsSumGetBufferSize_32f_Ctx(c_size_t(signal.size), byref(signal_need), context))
    scratch = cupy.zeros(max(need.value, signal_need.value), cupy.uint8)
    for step in steps():
        must(colour.nppiRGBToGray_8u_C3C1R_Ctx(*at(rgb), *at(grey), full, context))
        for _ in range(20):
            # It reads two pixels beyond on each side.
            must(filters.nppiFilterGauss_8u_C1R_Ctx(*at(grey[2:-2, 2:-2]), *at(blurred[2:-2, 2:-2]), inner,
                                                    FIVE_BY_FIVE, context))
            must(geometry.nppiMirror_8u_C1R_Ctx(*at(blurred), *at(mirrored), full, BOTH_AXES, context))
            must(logic.nppiAdd_8u_C1RSfs_Ctx(*at(mirrored), *at(grey), *at(sum_), full, 1, context))
            grey, sum_ = sum_, grey
        must(geometry.nppiResize_8u_C1R_Ctx(*at(grey), full, whole, *at(resized), half, small, LINEAR, context))
        must(transposition.nppiTranspose_8u_C1R_Ctx(*at(resized), *at(turned), half, context))
        must(statistics.nppiSum_8u_C1R_Ctx(*at(grey), full, c_void_p(scratch.data.ptr), c_void_p(total.data.ptr),
                                           context))
        signal[:] = turned.ravel()
        must(signals.nppsSqrt_32f_Ctx(c_void_p(signal.data.ptr), c_void_p(roots.data.ptr), c_size_t(signal.size),
                                      context))
        must(signals.nppsSum_32f_Ctx(c_void_p(roots.data.ptr), c_size_t(roots.size), c_void_p(signal_total.data.ptr),
                                     c_void_p(scratch.data.ptr), context))
        rgb = cupy.roll(rgb, step, axis=1) ^ grey[:, :, None]
        stream.synchronize()
        show(step, grey, turned, total, signal_total)
    end(rgb)
