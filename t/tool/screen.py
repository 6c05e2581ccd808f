#!/usr/bin/env python3
"""screen.py - a program that uses its terminal as full-screen programs do, and says so.

Draws "drawn ROWSxCOLUMNS" at the start and at each SIGWINCH, and answers keys: q ends it, f shows
what it has open, anything else is repeated. Ignores SIGTSTP, as programs do that read ^Z as a key.
"""
import fcntl
import os
import select
import signal
import sys
import termios


def say(text):
    os.write(1, text.encode() + b"\r\n")


def draw(*_):
    say("drawn %dx%d" % tuple(os.get_terminal_size(1)[::-1]))


def flags():
    return " ".join("non-blocking" if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK else
                    "blocking" for fd in (0, again, tty))


again = os.open(os.ttyname(0), os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
tty = os.open("/dev/tty", os.O_RDWR)
before = termios.tcgetattr(0)
modes = termios.tcgetattr(0)
modes[0] &= ~(termios.ICRNL | termios.IXON)
modes[0] |= termios.IXANY
modes[1] |= termios.ONLCR | termios.OCRNL
modes[3] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
modes[4] = modes[5] = termios.B9600
modes[6][termios.VERASE] = b"\x15"
termios.tcsetattr(again, termios.TCSANOW, modes)
signal.signal(signal.SIGTSTP, signal.SIG_IGN)
signal.signal(signal.SIGWINCH, draw)
keys = select.epoll()
keys.register(0, select.EPOLLIN)
keys.register(again, select.EPOLLIN | select.EPOLLET)
draw()
while True:
    keys.poll()
    try:
        key = os.read(again, 1).decode()
    except BlockingIOError:
        continue
    if key == "q":
        break
    say("open: " + flags() + " " + os.ttyname(tty) if key == "f" else f"key {key}")
termios.tcsetattr(0, termios.TCSADRAIN, before)
sys.exit(7)
