#!/usr/bin/env python3
"""typed.py - run a program on a pseudo-terminal of its own, fed through FIFOs: what script(1) and
tmux do, as a program of its own to be saved with its child.

	typed.py INPUT SCREEN COMMAND [ARG...]

What is written to the FIFO INPUT is typed; what the terminal shows is added to the file SCREEN.
Ends with the command's status.
"""
import os
import pty
import select
import signal
import sys

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
pid, master = pty.fork()
if pid == 0:
    os.environ["TERM"] = "vt100"
    os.execvp(sys.argv[3], sys.argv[3:])
typed = os.open(sys.argv[1], os.O_RDWR | os.O_NONBLOCK)
screen = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
while True:
    ready, _, _ = select.select([typed, master], [], [])
    if typed in ready:
        os.write(master, os.read(typed, 4096))
    if master in ready:
        try:
            data = os.read(master, 4096)
        except OSError:
            break
        if not data:
            break
        os.write(screen, data)
_, status = os.waitpid(pid, 0)
print("ended", os.waitstatus_to_exitcode(status), flush=True)
