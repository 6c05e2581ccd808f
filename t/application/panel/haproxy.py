# Packages: haproxy python3. Needs: haproxy python3
# A master with a worker of several threads; connections kept open through it, and its socket.
import os
import signal
import socket
import subprocess
import time

from local_http import connect, get, serve_behind

here = os.getcwd()
port, behind = int(os.environ["PORT"]), int(os.environ["PORT2"])


def contents(path):
    return (path * 5000).encode()


serve_behind(behind, contents)
open("conf", "w").write(f"""
global
    nbthread 4
    stats socket {here}/s level admin
    pidfile {here}/pid
defaults
    mode http
    timeout connect 60s
    timeout client 600s
    timeout server 600s
frontend f
    bind 127.0.0.1:{port}
    stick-table type string size 1k store http_req_cnt
    http-request track-sc0 path
    default_backend b
backend b
    server one 127.0.0.1:{behind} check inter 100ms
""")
proxy = subprocess.Popen(["haproxy", "-W", "-q", "-f", "conf"], stderr=open("haproxy.err", "w"))


def ask(command):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("s")
        s.sendall(command.encode() + b"\n")
        return s.makefile().read()


kept = [connect(port, proxy) for _ in range(5)]
for k in range(100):
    assert get(kept[k % 5], f"/counted{k % 3}") == contents(f"/counted{k % 3}")
print("ready", flush=True)
while not os.path.exists("go"):
    for c in kept:
        assert get(c, "/more") == contents("/more")
    time.sleep(0.002)
print([get(c, "/counted0") == contents("/counted0") for c in kept])
print(sorted(line.split("key=")[1].split()[0] + " " + line.split("http_req_cnt=")[1]
      for line in ask("show table f").splitlines() if "counted" in line))
proxy.send_signal(signal.SIGUSR1)  # ends when its connections have
for c in kept:
    c.close()
print(proxy.wait())
