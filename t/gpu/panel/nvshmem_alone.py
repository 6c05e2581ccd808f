"""NVSHMEM with one processing element, which needs no launcher: memory of the symmetric heap, puts, gets, sums and
barriers in the order of a stream."""
import os
from ctypes import Structure, byref, c_char, c_int, c_size_t, c_void_p, sizeof

# Within one machine: no network to look for, and no memory that switches multiply.
os.environ.update(NVSHMEM_REMOTE_TRANSPORT="none", NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME="lo", NVSHMEM_DISABLE_NVLS="1",
                  NVSHMEM_DISABLE_NCCL="1", NVSHMEM_SYMMETRIC_SIZE="64M")
import cupy
from common import end, show, steps
from toolkit import library, must

COUNT, WITH_UNIQUE_ID, WORLD = 1 << 18, 1 << 3, 0


def versioned(structure):
    structure.version = (1 << 16) + sizeof(structure)
    return structure


class UniqueId(Structure):
    _fields_ = [("version", c_int), ("internal", c_char * 124)]


class UniqueIdArguments(Structure):
    _fields_ = [("version", c_int), ("id", c_void_p), ("rank", c_int), ("ranks", c_int)]


class Arguments(Structure):
    _fields_ = [("version", c_int), ("unique_id", UniqueIdArguments), ("content", c_char * 96)]


class Attributes(Structure):
    _fields_ = [("version", c_int), ("communicator", c_void_p), ("arguments", Arguments)]


shmem = library("libnvshmem_host")
for function in (shmem.nvshmem_malloc, shmem.nvshmem_ptr):
    function.restype = c_void_p


def start():
    identity, attributes = versioned(UniqueId()), versioned(Attributes())
    versioned(attributes.arguments)
    versioned(attributes.arguments.unique_id)
    must(shmem.nvshmemx_get_uniqueid(byref(identity)))
    must(shmem.nvshmemx_set_attr_uniqueid_args(0, 1, byref(identity), byref(attributes)))
    must(shmem.nvshmemx_hostlib_init_attr(WITH_UNIQUE_ID, byref(attributes)))
    assert shmem.nvshmem_my_pe() == 0 and shmem.nvshmem_n_pes() == 1


def symmetric():
    """An array on the symmetric heap."""
    address = shmem.nvshmem_malloc(c_size_t(COUNT * 4))
    assert address and shmem.nvshmem_ptr(c_void_p(address), 0) == address
    memory = cupy.cuda.UnownedMemory(address, COUNT * 4, None)
    return cupy.ndarray(COUNT, cupy.float32, cupy.cuda.MemoryPointer(memory, 0))


def at(array):
    return c_void_p(array.data.ptr)


cupy.zeros(1)  # makes the device's context
start()
stream = cupy.cuda.Stream(non_blocking=True)
queue, size = c_void_p(stream.ptr), c_size_t(COUNT * 4)
with stream:
    ours, theirs, total = symmetric(), symmetric(), symmetric()
    own = cupy.zeros(COUNT, cupy.float32)
    ours[:] = cupy.arange(COUNT) % 1000
    for step in steps():
        shmem.nvshmemx_putmem_on_stream(at(theirs), at(ours), size, 0, queue)
        shmem.nvshmemx_barrier_all_on_stream(queue)
        shmem.nvshmemx_getmem_on_stream(at(own), at(theirs), size, 0, queue)
        must(shmem.nvshmemx_float_sum_reduce_on_stream(WORLD, at(total), at(theirs), c_size_t(COUNT), queue))
        stream.synchronize()
        assert bool((own == ours).all()) and bool((total == ours).all())
        ours[:] = (own + cupy.roll(total, step)) % 1009
        stream.synchronize()
        show(step, ours)
    end(own, total)
for array in (ours, theirs, total):
    shmem.nvshmem_free(at(array))
shmem.nvshmemx_hostlib_finalize()
