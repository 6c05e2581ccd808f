#!/usr/bin/python3
"""arrays.py REPORT MIB - CPython with NumPy, an array of MIB of random numbers, and a tick with each sum of a part of it.

The system's python3, where its NumPy is installed. Runs until it is killed."""

import mmap
import sys
import time

import numpy

# bench/report.h
READY, TICKS, LARGEST_GAP, FIRST_TICK = range(4)
PART = 1 << 16

with open(sys.argv[1], "r+b") as file:
    report = numpy.frombuffer(mmap.mmap(file.fileno(), 4096), dtype=numpy.uint64)
words = numpy.random.default_rng(1).integers(1 << 63, size=int(sys.argv[2]) << 17, dtype=numpy.int64)
matrix = numpy.ones((64, 64))
matrix @ matrix  # so that the threads of the linear algebra are there
report[READY] = 1
at, last = 0, time.monotonic_ns()
while True:
    words[at:at + PART].sum()
    at = (at + PART) % len(words)
    now = time.monotonic_ns()
    if now - last > report[LARGEST_GAP]:
        report[LARGEST_GAP] = now - last
    if not report[FIRST_TICK]:
        report[FIRST_TICK] = time.monotonic_ns()
    report[TICKS] += numpy.uint64(1)
    last = now
