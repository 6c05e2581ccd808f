"""cuda.core, NVIDIA's own Python: programs compiled at run time and linked, streams, events, graphs and pools."""
import numpy
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
from common import end, show, steps

SOURCE = r"""
extern "C" __global__ void step(unsigned *words, unsigned n, unsigned round)
{
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
		unsigned x = words[i] ^ (round * 2654435761u);
		x ^= x << 13; x ^= x >> 17; x ^= x << 5;
		words[i] = x + i;
	}
}
"""
COUNT = 1 << 20


def compiled(device, kind):
    arch = "".join(map(str, device.compute_capability))
    program = Program(SOURCE, "c++", ProgramOptions(std="c++17", arch=f"sm_{arch}"))
    return program.compile(kind).get_kernel("step")


def read(device, stream, buffer):
    out = numpy.empty(COUNT, numpy.uint32)
    stream.sync()
    from cuda.bindings import driver
    (status,) = driver.cuMemcpyDtoH(out.ctypes.data, int(buffer.handle), out.nbytes)
    assert status == driver.CUresult.CUDA_SUCCESS, status
    return out


def main():
    device = Device()
    device.set_current()
    stream = device.create_stream()
    kernel = compiled(device, "cubin")
    config = LaunchConfig(grid=256, block=256)
    words = device.allocate(COUNT * 4, stream=stream)
    words.fill(0, stream=stream)
    for step in steps():
        if step % 500 == 499:
            kernel = compiled(device, "cubin")
        launch(stream, config, kernel, words, numpy.uint32(COUNT), numpy.uint32(step))
        extra = device.allocate(4096 * (1 + step % 50), stream=stream)
        event = stream.record()
        extra.close(stream)
        event.sync()
        show(step, read(device, stream, words) if step % 20 == 0 else step)
    end(read(device, stream, words))


main()
