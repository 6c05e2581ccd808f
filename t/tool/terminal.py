#!/usr/bin/env python3
"""terminal.py - run a command on a pseudo-terminal and act as its user.

	terminal.py COMMAND [ARG...]

Reads one step a line from standard input:

	expect REGEX	until the terminal's output since the last match has it (30 s)
	send TEXT	type TEXT, with \\n, \\xNN and so on
	run COMMAND	run a command outside of the terminal, which has to succeed
	close		hang up

What the terminal shows goes to standard output. Exit status: the command's, 128 + n for
signal n; 99 when a step fails.
"""
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
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


for line in sys.stdin:
    verb, _, rest = line.rstrip("\n").partition(" ")
    if verb == "send":
        os.write(fd, rest.encode().decode("unicode_escape").encode("latin-1"))
    elif verb == "run":
        if subprocess.call(rest, shell=True, stdin=subprocess.DEVNULL) != 0:
            print(f"\nterminal.py: {rest!r} fails, have {seen!r}")
            os.kill(pid, signal.SIGKILL)
            sys.exit(99)
    elif verb == "close":
        os.close(fd)
        break
    elif verb == "expect":
        end = time.monotonic() + 30
        while True:
            found = re.search(rest, seen)
            if found:
                seen = seen[found.end():]
                break
            if not more(end - time.monotonic()):
                print(f"\nterminal.py: expected {rest!r}, have {seen!r}")
                os.kill(pid, signal.SIGKILL)
                sys.exit(99)
else:
    while more(60):
        pass
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
