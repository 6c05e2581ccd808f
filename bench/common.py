"""What bench/run and bench/gpu have in common: processes, reports, trecr itself, tables."""

import os
import platform
import shlex
import statistics
import signal
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
WAIT_S = 120  # for anything that is to happen
INCREMENTAL = ("--incremental", "--dirty=uffd", "-k", "9")


class Failed(Exception):
    pass


def say(text):
    print(text, file=sys.stderr, flush=True)


def wait_for(what, condition):
    """Wait until condition() is true and return its value."""
    end = time.monotonic() + WAIT_S
    while not (value := condition()):
        if time.monotonic() > end:
            raise Failed(f"waited {WAIT_S} s for {what}")
        time.sleep(0.0005)
    return value


def timed(argv, log):
    """Run argv to its end; milliseconds, and what it printed."""
    start = time.monotonic_ns()
    with open(log, "a") as errors:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=errors, text=True)
    took = (time.monotonic_ns() - start) / 1e6
    if done.returncode != 0:
        with open(log) as f:
            tail = "".join(f.readlines()[-5:])
        raise Failed(f"{shlex.join(argv)} ended with {done.returncode}:\n{tail}")
    return took, done.stdout


def processes_of(exe):
    """Ids of the processes that execute the file exe."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if os.readlink(f"/proc/{name}/exe") == exe:
                    found.append(int(name))
            except OSError:
                pass  # not ours, or gone
    return found


def processes_with(path):
    """Ids of the processes that have an argument which begins with path, but for trecr's own."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as f:
                    arguments = f.read().split(b"\0")
                own = os.path.basename(os.readlink(f"/proc/{name}/exe")).startswith("trecr-")
            except OSError:
                continue  # not ours, or gone
            if any(a.startswith(os.fsencode(path)) for a in arguments) and not own:
                found.append(int(name))
    return found


def kill_all(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has ended with its parent


def wait_gone(pids):
    """Until these ids can be taken again: somebody has waited for each process."""
    wait_for("processes that have been killed",
             lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))


def end_all(find):
    """End the processes that find() finds."""
    kill_all(find())
    wait_for("the end of what was measured", lambda: not find())


def size_on_disk(path):
    total = 0
    for folder, _, files in os.walk(path):
        for name in files:
            total += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return total / 2**20


class Report:
    """bench/report.h: a file on a disk. On a tmpfs a file that is mapped is memory of the
    program, and comes back as it was at the checkpoint."""

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as f:
            f.write(bytes(4096))

    def _word(self, index):
        with open(self.path, "rb") as f:
            f.seek(8 * index)
            return struct.unpack("<Q", f.read(8))[0]

    def _clear(self, index):
        with open(self.path, "r+b", buffering=0) as f:
            f.seek(8 * index)
            f.write(bytes(8))

    def wait_ready(self):
        wait_for("the program to be ready", lambda: self._word(0))

    def wait_tick(self):
        before = self._word(1)
        wait_for("the program's next tick", lambda: self._word(1) != before)

    def clear_gap(self):
        self._clear(2)

    def gap_ms(self):
        return self._word(2) / 1e6

    def clear_first_tick(self):
        self._clear(3)

    def wait_first_tick(self):
        return wait_for("the first tick", lambda: self._word(3))

    def ms_to_first_tick(self, restart):
        """Of restart(), by our clock: CRIU may put a tree into a time namespace, in which the clock has stood still
        since the checkpoint."""
        with ThreadPoolExecutor(1) as pool:
            start = time.monotonic_ns()
            running = pool.submit(restart)
            wait_for("the first tick",
                     lambda: self._word(3) or (running.done() and running.exception()))
            took = (time.monotonic_ns() - start) / 1e6
            running.result()
        return took

    def have_memory_written(self, percent=1):
        with open(self.path, "r+b", buffering=0) as f:
            f.seek(8 * 4)
            f.write(struct.pack("<Q", percent))
        wait_for("memory to be written", lambda: not self._word(4))


class Trecr:
    name = "trecr"
    run_options = ()
    checkpoint_options = ()
    restart_options = ()

    def __init__(self, options, build=None):
        self.bin = build or options.build
        if not os.path.exists(self.tool("run")):
            raise Failed(f"no trecr-run in {self.bin}: build first")

    def tool(self, name):
        return os.path.join(self.bin, "trecr-" + name)

    def version(self):
        return "trecr (this tree)"

    def start(self, argv, images, incremental=False):
        how = INCREMENTAL if incremental else ()
        return subprocess.Popen([self.tool("run"), *self.run_options, *how, "-d", images, "--", *argv],
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL, start_new_session=True)

    def checkpoint(self, child, images, log):
        took, printed = timed([self.tool("ckpt"), *self.checkpoint_options, str(child.pid)], log)
        return took, printed.strip().splitlines()[-1]

    def restart(self, image, log):
        timed([self.tool("restart"), *self.restart_options, "-D", image], log)

    def end(self, images):
        """All that was started has been killed."""


def in_turns(names, repetition):
    """Another one is first each time."""
    first = repetition % len(names)
    return names[first:] + names[:first]


def number(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def cell(values):
    if not values:
        return "–"
    text = number(statistics.median(values))
    return text if len(values) < 2 else f"{text} ({number(min(values))}–{number(max(values))})"


def table(rows, names, base):
    """One line a row; behind the figures, each tool's median divided by the base's."""
    others = [name for name in names if name != base] if base in names else []
    head = ["case", *names, *(f"{name} : {base}" for name in others)]
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    for label, what, seen in rows:
        cells = [f"{label}: {what}" if label else what, *(cell(seen[name]) for name in names)]
        for name in others:
            below = statistics.median(seen[base]) if seen[base] else 0
            cells.append(f"{statistics.median(seen[name]) / below:.3f}"
                         if below and seen[name] else "–")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def machine(folder):
    """Processor, memory, kernel, and the file system of folder."""
    cpu = "unknown processor"
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
                break
    filesystem = subprocess.run(["stat", "-f", "-c", "%T", folder], text=True,
                                stdout=subprocess.PIPE).stdout.strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (f"{cpu}, {os.cpu_count()} cores, {memory:.0f} GiB, Linux {platform.release()}, "
            f"images on {filesystem}")
