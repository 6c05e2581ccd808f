#!/usr/bin/env python3
"""tree_memory.py stop|stopped|show|continue|kill PID: all processes below PID, a supervisor.

stop: stops them, until there is none that runs. stopped: waits until none runs, as they were stopped when they were
saved. continue: lets them run on. kill: ends all, the supervisor first, and waits until they are gone. show: what their memory is, to be
compared with what it is after a restart: for each process, by its own number for itself, each run of pages of
equal rights in 2 MiB, with a hash of what is in it. Pages of zeros are nothing, mapped or not.
"""
import os
import select
import signal
import sys
import zlib

PAGE, CHUNK = 4096, 2 << 20
ZEROS = bytes(PAGE)
# Nor is an io_uring: what keeps userfaultfds open is one (supervisor/memory/uffd_anchor.h).
NOT_THE_PROGRAMS = ("[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]", "anon_inode:[io_uring]")


def below(pid):
    """Processes, parents first."""
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as f:
                for child in f.read().split():
                    found += [int(child)] + below(int(child))
    except (FileNotFoundError, ProcessLookupError):
        pass
    return found


def status(pid, name):
    """A field of /proc/PID/status; None when there is no such process."""
    try:
        with open(f"/proc/{pid}/status") as f:
            return next(line.split()[1:] for line in f if line.startswith(name + ":"))
    except (FileNotFoundError, ProcessLookupError, StopIteration):
        return None


def is_program(pid):
    """Neither the init of a namespace that trecr has made nor a zombie."""
    command = status(pid, "Name")
    return command is not None and not command[0].startswith("trecr") and (status(pid, "State") or ["Z"])[0] != "Z"


def programs(supervisor):
    return [pid for pid in below(supervisor) if is_program(pid)]


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def has_pending(pid, *numbers):
    masks = [int((status(pid, name) or ["0"])[0], 16) for name in ("SigPnd", "ShdPnd")]
    return any(mask >> (number - 1) & 1 for mask in masks for number in numbers)


def is_stopped(pid):
    """A traced process that runs is "t" for a moment, too, at a fork for instance, and so is one that has just been sent
    SIGCONT: that it has taken the SIGSTOP that it was sent tells them from one that stays stopped. One that its parent
    kills is about to end."""
    return (status(pid, "State") or ["X"])[0] in "Tt" and not has_pending(pid, signal.SIGSTOP, signal.SIGKILL)


def until_stopped(supervisor, seen):
    """What has been forked meanwhile is found the next time: a process that was about to fork when it was listed may have
    done so when it is seen stopped. While others end, the kernel's list of children may lack one, too (proc(5)). So all
    have to be stopped, and then listed once more."""
    before = None
    while True:
        found = programs(supervisor)
        for pid in found:
            seen(pid)
        if not all(is_stopped(pid) for pid in found):
            before = None
        elif found == before:
            return
        else:
            before = found


def stop(supervisor):
    sent = set()

    def send_once(pid):
        if pid not in sent:
            send(pid, signal.SIGSTOP)
            sent.add(pid)

    until_stopped(supervisor, send_once)


def stopped(supervisor):
    until_stopped(supervisor, lambda pid: None)


def ranges(pid):
    """(start, end, rights), neighbours of equal rights as one: they may be two mappings after a restart."""
    found = []
    with open(f"/proc/{pid}/maps") as f:
        for line in f:
            words = line.split()
            if words[-1] in NOT_THE_PROGRAMS:
                continue
            start, end = (int(n, 16) for n in words[0].split("-"))
            if found and found[-1][1] == start and found[-1][2] == words[1]:
                start = found.pop()[0]
            found.append((start, end, words[1]))
    return found


def pages(memory, start, end):
    """The pages that hold something; behind the end of a file there is nothing to read."""
    try:
        data = os.pread(memory, end - start, start)
    except OSError:
        data = b""
    for at in range(start, end, PAGE):
        page = data[at - start:at - start + PAGE]
        if len(page) < PAGE:
            try:
                page = os.pread(memory, PAGE, at)
            except OSError:
                page = ZEROS
        if page != ZEROS:
            yield at, page


def show(supervisor):
    for pid in sorted(programs(supervisor), key=lambda pid: int(status(pid, "NSpid")[-1])):
        own = status(pid, "NSpid")[-1]
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
        for start, end, rights in ranges(pid):
            while start < end:
                upto = min(end, (start // CHUNK + 1) * CHUNK)
                crc = count = 0
                for at, page in pages(memory, start, upto):
                    crc, count = zlib.crc32(page, zlib.crc32(b"%x" % at, crc)), count + 1
                if count:
                    print(f"{own} {start:x} {rights} {count} pages {crc:08x}")
                start = upto
        os.close(memory)


def kill(supervisor):
    """One at a time: a parent that is gone has handed its children to somebody else."""
    gone = []
    for pid in [supervisor] + programs(supervisor):
        try:
            gone.append(os.pidfd_open(pid))
            signal.pidfd_send_signal(gone[-1], signal.SIGKILL)
        except ProcessLookupError:
            pass
    for each in gone:
        select.select([each], [], [])


def resume(supervisor):
    for pid in programs(supervisor):
        send(pid, signal.SIGCONT)


{"stop": stop, "stopped": stopped, "show": show, "continue": resume, "kill": kill}[sys.argv[1]](int(sys.argv[2]))
