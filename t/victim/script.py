#!/usr/bin/python3
"""A Python program as a victim: threads, a lock, a generator half-way, an open file."""
import os
import signal
import sys
import threading

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})


def say(line):
    os.write(1, line.encode() + b"\n")


def squares():
    for i in range(10):
        yield i * i


lock = threading.Lock()
stop = threading.Event()
ticks = [0, 0, 0]


def work(n):
    while not stop.wait(0.001):
        with lock:
            ticks[n] += 1


threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
for t in threads:
    t.start()
generator = squares()
first = [next(generator) for _ in range(4)]
table = {i: str(i) * 3 for i in range(10000)}
written = open("python-file", "w+")
written.write("buffered, not yet in the file")
say("ready")
signal.sigwait({signal.SIGUSR1})
if os.environ.get("VICTIM_HURT"):
    del table[77]
before = list(ticks)
while any(t <= b for t, b in zip(ticks, before)):
    stop.wait(0.001)
stop.set()
for t in threads:
    t.join()
written.flush()
written.seek(0)
good = (
    first + list(generator) == [i * i for i in range(10)]
    and len(table) == 10000
    and table[77] == "777777"
    and written.read() == "buffered, not yet in the file"
)
say("ok" if good else "differs")
sys.exit(0 if good else 1)
