"""Libraries of CUDA's toolkit that no framework brings, by way of ctypes."""
import ctypes
import glob
import os
import sysconfig


def library(stem):
    """The library called stem, of any version: of the system, of a wheel, of the toolkit."""
    folders = [os.path.join(sysconfig.get_path("purelib"), "nvidia/*/lib"), "/usr/local/cuda/lib64"]
    files = [f for folder in folders for f in sorted(glob.glob(os.path.join(folder, stem + ".so*")))]
    for name in [stem + ".so", *files]:
        try:
            return ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError:
            pass
    raise ImportError(f"no {stem} here")


def must(status):
    if status:
        raise RuntimeError(f"it gave {status}")
