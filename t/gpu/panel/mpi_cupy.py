"""mpi4py and CuPy: what the device has computed is reduced over a communicator, of one process. (Programs of several
MPI processes are not restarted yet.)"""
import cupy
from mpi4py import MPI
from common import end, show, steps

everybody = MPI.COMM_WORLD
random = cupy.random.RandomState(1)
total = cupy.zeros((256, 256))
for step in steps():
    part = random.standard_normal((256, 256))
    summed = everybody.allreduce(cupy.asnumpy(part @ part.T))
    total = cupy.tanh(total + cupy.asarray(summed))
    show(step, total)
end(total)
