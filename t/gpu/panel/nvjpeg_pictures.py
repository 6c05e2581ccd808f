"""nvJPEG: pictures are encoded on the GPU, decoded again and changed."""
from ctypes import Structure, byref, c_size_t, c_ubyte, c_void_p

import cupy
from common import end, show, steps
from toolkit import library, must

WIDTH, HEIGHT = 640, 480
RGBI, CSS_420, HYBRID = 5, 2, 1


class Image(Structure):
    _fields_ = [("channel", c_void_p * 4), ("pitch", c_size_t * 4)]


def image(array):
    return Image((c_void_p * 4)(array.data.ptr), (c_size_t * 4)(array.strides[0]))


jpeg = library("libnvjpeg")
stream = cupy.cuda.Stream(non_blocking=True)
on_stream = c_void_p(stream.ptr)
handle, decoder, state, pinned, device, parsed, wishes, encoder, settings = (c_void_p() for _ in range(9))
must(jpeg.nvjpegCreateEx(HYBRID, None, None, 0, byref(handle)))
# By name: its own choice may be an engine, whose pictures are a little different (none is used under trecr-run).
must(jpeg.nvjpegDecoderCreate(handle, HYBRID, byref(decoder)))
must(jpeg.nvjpegDecoderStateCreate(handle, decoder, byref(state)))
must(jpeg.nvjpegBufferPinnedCreate(handle, None, byref(pinned)))
must(jpeg.nvjpegStateAttachPinnedBuffer(state, pinned))
must(jpeg.nvjpegBufferDeviceCreate(handle, None, byref(device)))
must(jpeg.nvjpegStateAttachDeviceBuffer(state, device))
must(jpeg.nvjpegJpegStreamCreate(handle, byref(parsed)))
must(jpeg.nvjpegDecodeParamsCreate(handle, byref(wishes)))
must(jpeg.nvjpegDecodeParamsSetOutputFormat(wishes, RGBI))
must(jpeg.nvjpegEncoderStateCreate(handle, byref(encoder), on_stream))
must(jpeg.nvjpegEncoderParamsCreate(handle, byref(settings), on_stream))
must(jpeg.nvjpegEncoderParamsSetSamplingFactors(settings, CSS_420, on_stream))
with stream:
    random = cupy.random.RandomState(1)
    noise = random.randint(0, 64, (HEIGHT, WIDTH, 3), dtype=cupy.uint8)
    picture = noise + cupy.arange(WIDTH, dtype=cupy.uint16)[None, :, None].astype(cupy.uint8) // 4
    decoded = cupy.zeros_like(picture)
    for step in steps():
        must(jpeg.nvjpegEncoderParamsSetQuality(settings, 50 + step % 40, on_stream))
        must(jpeg.nvjpegEncodeImage(handle, encoder, settings, byref(image(picture)), RGBI, WIDTH, HEIGHT, on_stream))
        length = c_size_t()
        must(jpeg.nvjpegEncodeRetrieveBitstream(handle, encoder, None, byref(length), on_stream))
        stream.synchronize()
        data = (c_ubyte * length.value)()
        must(jpeg.nvjpegEncodeRetrieveBitstream(handle, encoder, data, byref(length), on_stream))
        stream.synchronize()
        must(jpeg.nvjpegJpegStreamParse(handle, data, c_size_t(length.value), 0, 0, parsed))
        must(jpeg.nvjpegDecodeJpeg(handle, decoder, state, parsed, byref(image(decoded)), wishes, on_stream))
        stream.synchronize()
        show(step, length.value, decoded)
        picture = cupy.roll(decoded, 3, axis=1) ^ (noise >> 2)
    end(picture)
