# Packages: tinyproxy python3. Needs: tinyproxy python3
# A proxy of threads, with tunnels (CONNECT) that stay open.
import os
import pwd

from local_http import serve_behind
from local_server import ask_until_go, connect, end, start

here = os.getcwd()
port, behind = int(os.environ["PORT"]), int(os.environ["PORT2"])
serve_behind(behind, lambda path: (path * 4000).encode())
open("conf", "w").write(f"""
Port {port}
Listen 127.0.0.1
Timeout 3600
Allow 127.0.0.1
ConnectPort {behind}
LogFile "{here}/proxy.log"
{"User root" if os.getuid() == 0 else ""}
""")
server = start("tinyproxy", "-d", "-c", f"{here}/conf")


def tunnel():
    f = connect(port, server).makefile("rwb")
    f.write(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % behind)
    f.flush()
    assert b"200" in f.readline()
    while f.readline().strip():
        pass
    return f


def get(f, path):
    f.write(b"GET %s HTTP/1.1\r\nHost: test\r\n\r\n" % path)
    f.flush()
    size = 0
    while line := f.readline().strip():
        if line.lower().startswith(b"content-length:"):
            size = int(line.split()[1])
    return f.read(size)


kept = [tunnel() for _ in range(6)]
ask_until_go(lambda: [get(f, b"/more") for f in kept])
print([get(f, b"/%d" % k) == b"/%d" % k * 4000 for k, f in enumerate(kept)])
end(server)
