# Packages: python3-numpy. Needs: python3, python3:numpy
import os
import threading

import numpy

rng = numpy.random.default_rng(1)
a = rng.standard_normal((200, 200))
vectors = numpy.linalg.eigh(a + a.T)[1]
numpy.save("kept.npy", a)
mapped = numpy.load("kept.npy", mmap_mode="r")
stop = threading.Event()


def busy():
    while not stop.is_set():
        numpy.linalg.svd(a[:100, :100])


threads = [threading.Thread(target=busy) for _ in range(2)]
for t in threads:
    t.start()
print("ready", flush=True)
while not os.path.exists("go"):
    numpy.fft.fft2(a)
stop.set()
for t in threads:
    t.join()
b = rng.standard_normal((200, 200))
print(repr(numpy.abs(vectors).sum()), repr((mapped @ b).sum()), repr(rng.integers(1 << 60)))
