#!/usr/bin/env python3
"""terminal.py - run a command on a pseudo-terminal and act as its user.

	terminal.py [-s ROWSxCOLUMNS] COMMAND [ARG...]

Reads one step a line from standard input:

	expect REGEX	until the terminal's output since the last match has it (60 s, TEST_SLOW times as
			long: t/lib.sh)
	send TEXT	type TEXT, with \\n, \\xNN and so on
	insist TEXT REGEX	type TEXT, which has no blanks, each second until the output has REGEX:
			for keys that a program ignores for a moment
	run COMMAND	run a command outside of the terminal, which has to succeed; $TTY is the
			terminal's name
	close		hang up

What the terminal shows goes to standard output. Exit status: the command's, 128 + n for
signal n; 99 when a step fails.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

slow = max(1, int(os.environ.get("TEST_SLOW") or 1))
command = sys.argv[1:]
size = (24, 80)
if command[0] == "-s":
    size = tuple(int(n) for n in command[1].split("x"))
    command = command[2:]
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", *size, 0, 0))
    os.execvp(command[0], command)
number, = struct.unpack("I", fcntl.ioctl(fd, 0x80045430, bytes(4)))  # TIOCGPTN
os.environ["TTY"] = f"/dev/pts/{number}"
seen = ""


def more(limit):
    global seen
    ready, _, _ = select.select([fd], [], [], max(0, limit))
    if not ready:
        return False
    try:
        data = os.read(fd, 65536)
    except OSError:
        return False
    text = data.decode(errors="replace")
    seen += text
    sys.stdout.write(text)
    sys.stdout.flush()
    return bool(data)


def type_keys(text):
    os.write(fd, text.encode().decode("unicode_escape").encode("latin-1"))


def expect(regex, limit):
    """Whether the output has regex within so many seconds; what comes before it is dropped."""
    global seen
    end = time.monotonic() + limit
    while True:
        found = re.search(regex, seen)
        if found:
            seen = seen[found.end():]
            return True
        if not more(end - time.monotonic()):
            return False


def insist(text, regex):
    for _ in range(30 * slow):
        type_keys(text)
        if expect(regex, 1):
            return True
    return False


def fail(what):
    print(f"\nterminal.py: {what}, have {seen!r}")
    os.kill(pid, signal.SIGKILL)
    sys.exit(99)


for line in sys.stdin:
    verb, _, rest = line.rstrip("\n").partition(" ")
    if verb == "send":
        type_keys(rest)
    elif verb == "insist":
        if not insist(*rest.split(" ", 1)):
            fail(f"typed {rest!r} in vain")
    elif verb == "run":
        if subprocess.call(rest, shell=True, stdin=subprocess.DEVNULL) != 0:
            fail(f"{rest!r} fails")
    elif verb == "close":
        os.close(fd)
        break
    elif verb == "expect":
        if not expect(rest, 60 * slow):
            fail(f"expected {rest!r}")
else:
    while more(60 * slow):
        pass
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
