# Packages: gunicorn python3-uvicorn python3. Needs: gunicorn python3:uvicorn python3
# A server of several processes, and an asynchronous one, with programs that keep what they were told.
import os
import sys

from local_http import connect, get
from local_server import ask_until_go, end, start

ports = int(os.environ["PORT"]), int(os.environ["PORT2"])
open("threaded.py", "w").write("""
import threading
told, lock = {}, threading.Lock()
def application(environ, start):
    with lock:
        told[environ["PATH_INFO"]] = told.get(environ["PATH_INFO"], 0) + 1
    data = repr(sorted(told.items())).encode()
    start("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(data)))])
    return [data]
""")
open("asynchronous.py", "w").write("""
import asyncio
told = {}
async def application(scope, receive, send):
    if scope["type"] != "http":
        return
    await asyncio.sleep(0.001)
    told[scope["path"]] = told.get(scope["path"], 0) + 1
    data = repr(sorted(told.items())).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(data))]})
    await send({"type": "http.response.body", "body": data})
""")
servers = [start("gunicorn", "-w", "1", "--threads", "8", "--keep-alive", "600", "-b", f"127.0.0.1:{ports[0]}",
                 "--worker-tmp-dir", ".", "threaded:application"),
           start(sys.executable, "-m", "uvicorn", "--port", str(ports[1]), "--timeout-keep-alive", "600",
                 "asynchronous:application")]
kept = [connect(port, server) for port, server in zip(ports, servers) for _ in range(4)]
for k in range(400):
    get(kept[k % 8], f"/{k % 3}")
ask_until_go(lambda: [get(c, "/more") for c in kept])
print([[pair for pair in eval(get(c, "/0")) if pair[0] != "/more"] for c in (kept[0], kept[4])])
for server in servers:
    end(server)
