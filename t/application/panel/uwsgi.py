# Packages: uwsgi-core uwsgi-plugin-python3 python3. Needs: uwsgi /usr/lib/uwsgi/plugins/python3_plugin.so python3
# A server of applications: a master, workers with an interpreter in each, shared memory, locks between processes.
import http.client
import os

from local_http import get
from local_server import ask_until_go, connect, end, start

port = int(os.environ["PORT"])
open("app.py", "w").write("""
import uwsgi
kept = []
def application(env, start):
    kept.append(env["PATH_INFO"])
    uwsgi.lock()
    uwsgi.cache_update("turn", b"%d" % (int(uwsgi.cache_get("turn") or 0) + 1))
    uwsgi.unlock()
    start("200 OK", [("Content-Length", "3005")])
    return [env["PATH_INFO"].encode().ljust(5), b"x" * 3000]
""")
server = start("uwsgi", "--plugins", "python3", "--http-socket", f"127.0.0.1:{port}", "--wsgi-file", "app.py", "--master",
               "--processes", "3", "--cache2", "name=c,items=10", "--die-on-term", "--need-app")
connect(port, server).close()


def ask():
    for k in range(6):
        assert get(http.client.HTTPConnection("127.0.0.1", port, timeout=60), f"/{k}") == b"/%d   " % k + b"x" * 3000


ask_until_go(ask)
for _ in range(20):
    ask()
end(server)
