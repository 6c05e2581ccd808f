# Packages: redis-server python3. Needs: redis-server python3
# Options: --save-files
# Everything is appended to a file, which is rewritten all the time; in the end it alone says what was there.
import os
import random
import socket
import time

from local_server import start

CHOICES = {"port": 0, "unixsocket": os.getcwd() + "/s", "save": "", "appendonly": "yes", "dir": ".",
           "auto-aof-rewrite-percentage": 20, "auto-aof-rewrite-min-size": "32kb"}


def begin():
    server = start("redis-server", *(str(word) for name, value in CHOICES.items() for word in ("--" + name, value)))
    while True:
        try:
            s = socket.socket(socket.AF_UNIX)
            s.connect("s")
            f = s.makefile("rwb")
            if ask(f, "PING") == b"PONG":
                return server, f
        except (OSError, RuntimeError):
            assert server.poll() is None
            time.sleep(0.02)


def answer(f):
    kind, rest = (line := f.readline())[:1], line[1:-2]
    if kind == b"-":
        raise RuntimeError(rest)
    if kind == b"$":
        return f.read(int(rest) + 2)[:-2] if rest != b"-1" else None
    if kind == b"*":
        return [answer(f) for _ in range(int(rest))]
    return rest


def ask(f, *words):
    data = [str(word).encode() for word in words]
    f.write(b"*%d\r\n" % len(data) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in data))
    f.flush()
    return answer(f)


def is_as_it_was(f):
    return {key.decode(): ask(f, "GET", key.decode()).decode() for key in ask(f, "KEYS", "*")} == model


server, f = begin()
model, chance, k = {}, random.Random(7), 0
print("ready", flush=True)
while k < 5000 or not os.path.exists("go"):
    k += 1
    key = f"k{chance.randrange(500)}"
    if chance.random() < .1:
        ask(f, "DEL", key)
        model.pop(key, None)
    elif len(model.get(key, "")) < 1000:
        ask(f, "APPEND", key, k)
        model[key] = model.get(key, "") + str(k)
    else:
        ask(f, "SET", key, k)
        model[key] = str(k)
print(is_as_it_was(f))
f.write(b"SHUTDOWN\r\n")
f.flush()
print(server.wait())
server, f = begin()
print(is_as_it_was(f))
server.terminate()
print(server.wait())
