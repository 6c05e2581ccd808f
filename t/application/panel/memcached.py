# Packages: memcached python3. Needs: memcached python3
import os
import pwd
import socket
import subprocess
import time

path = os.path.join(os.getcwd(), "s")
server = subprocess.Popen(["memcached", "-s", path, "-u", pwd.getpwuid(os.getuid()).pw_name])
while not os.path.exists(path):
    time.sleep(0.02)


def connect():
    s = socket.socket(socket.AF_UNIX)
    while s.connect_ex(path):
        time.sleep(0.02)
    return s.makefile("rwb")


def ask(f, line, data=None):
    f.write(line + b"\r\n" + (data + b"\r\n" if data is not None else b""))
    f.flush()
    return f.readline()


files = [connect() for _ in range(8)]
for k in range(2000):
    assert ask(files[k % 8], b"set k%d 0 0 %d" % (k, k % 90 + 1), b"v" * (k % 90 + 1)) == b"STORED\r\n"
ask(files[0], b"set n 0 0 1", b"0")
print("ready", flush=True)
while not os.path.exists("go"):
    for f in files:
        assert ask(f, b"get missing") == b"END\r\n"
    time.sleep(0.002)
total = 0
for k in range(2000):
    head = ask(files[k % 8], b"get k%d" % k)
    total += len(files[k % 8].readline())
    assert files[k % 8].readline() == b"END\r\n"
for f in files:
    number = ask(f, b"incr n 5")
print(total, number)
server.terminate()
print(server.wait())
