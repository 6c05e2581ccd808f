"""What the programs of the panel have in common: how many steps, and how results are printed."""
import itertools
import os
import time
import zlib


def steps(before=1):
    """As many steps as PANEL_STEPS says, else as many as PANEL_SECONDS allow after the first. What takes long once
    is done in `before` steps in all: all but the last of them are negative numbers, and not to be shown."""
    yield from range(1 - before, 0)
    count = int(os.environ.get("PANEL_STEPS", 0))
    if count:
        yield from range(count)
        return
    yield 0
    end = time.monotonic() + float(os.environ.get("PANEL_SECONDS", 8))
    for i in itertools.count(1):
        if time.monotonic() > end:
            return
        yield i


def to_host(value):
    """Bytes of an array of any of the frameworks."""
    if hasattr(value, "detach"):
        import torch
        return value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    if hasattr(value, "copy_to_host"):
        return value.copy_to_host().tobytes()
    if type(value).__module__.startswith("cupy"):
        return value.get().tobytes()
    import numpy
    return numpy.asarray(value).tobytes()


def text(value):
    """A number or string as it is, to the last bit; of an array, a hash."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, (int, str)):
        return str(value)
    return f"{zlib.crc32(to_host(value)):08x}"


def show(step, *values):
    print("step", step, *map(text, values), flush=True)


def end(*values):
    print("end", *map(text, values), flush=True)


def set_up_torch(strict=False):
    """Deterministic algorithms and fixed seeds. Gives the device."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    import torch
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True, warn_only=not strict)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.set_num_threads(1)
    return torch.device(os.environ.get("PANEL_DEVICE", "cuda"))


def set_up_jax():
    """Deterministic kernels, and little memory. To be called before jax is imported."""
    # Without the level XLA measures which of several kernels is the fastest, each time anew.
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + \
        " --xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0"
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.01")


def weights(model):
    """All parameters and buffers as one array."""
    import torch
    return torch.cat([t.detach().float().reshape(-1) for t in model.state_dict().values()])
