# Packages: php-fpm python3. Needs: php-fpm8.2 python3
# A master with workers that keep a cache of compiled files in common memory; FastCGI over a socket.
import glob
import os
import socket
import struct
import subprocess
import sys
import time

open("x.php", "w").write("""<?php
session_save_path('.'); session_id('abc'); session_start();
$_SESSION['n'] = ($_SESSION['n'] ?? 0) + (int)$_GET['add'];
echo $_SESSION['n'], ' ', array_sum(array_map(fn($x) => $x * $x, range(1, 1000)));
""")
user = "user = root\ngroup = root\n" if os.getuid() == 0 else ""
open("conf", "w").write(f"""
[global]
error_log = {os.getcwd()}/fpm.log
[x]
{user}listen = s
pm = static
pm.max_children = 3
""")
server = subprocess.Popen(["php-fpm8.2", "-F", "-n", "-p", os.getcwd(), "-y", "conf"]
                          + ["-R"] * (os.getuid() == 0), stderr=open("fpm.err", "w"))


def pair(name, value):
    name, value = name.encode(), value.encode()
    return struct.pack("!BB", len(name), len(value)) + name + value


def record(kind, data):
    return struct.pack("!BBHHBB", 1, kind, 1, len(data), 0, 0) + data


def ask(add):
    with socket.socket(socket.AF_UNIX) as s:
        while s.connect_ex("s"):
            assert server.poll() is None
            time.sleep(0.02)
        parameters = b"".join(pair(*p) for p in {
            "SCRIPT_FILENAME": os.getcwd() + "/x.php", "REQUEST_METHOD": "GET",
            "QUERY_STRING": f"add={add}", "SCRIPT_NAME": "/x.php"}.items())
        s.sendall(record(1, struct.pack("!HB5x", 1, 0)) + record(4, parameters) +
                  record(4, b"") + record(5, b""))
        f, text = s.makefile("rb"), b""
        while True:
            _, kind, _, length, padding, _ = struct.unpack("!BBHHBB", f.read(8))
            data = f.read(length + padding)[:length]
            if kind == 6:
                text += data
            if kind == 3:
                return text.split(b"\r\n\r\n")[-1]


for _ in range(50):
    ask(1)
print("ready", flush=True)
while not os.path.exists("go"):
    ask(0)
print([ask(1) for _ in range(5)])
server.terminate()
print(server.wait())
