# Packages: influxdb python3. Needs: influxd python3
# Options: --save-files
# Go; a log that goes to mapped files, which are replaced by larger ones.
import json
import os
import urllib.parse
import urllib.request

from local_server import connect, end, start

here, port = os.getcwd() + "/influx", int(os.environ["PORT"])
open("conf", "w").write(f"""
reporting-disabled = true
bind-address = "127.0.0.1:{os.environ['PORT2']}"
[meta]
dir = "{here}/meta"
[data]
dir = "{here}/data"
wal-dir = "{here}/wal"
cache-snapshot-memory-size = "128k"
cache-snapshot-write-cold-duration = "1s"
compact-full-write-cold-duration = "2s"
[http]
bind-address = "127.0.0.1:{port}"
log-enabled = false
[monitor]
store-enabled = false
""")


def ask(path, data=None, **words):
    url = f"http://127.0.0.1:{port}/{path}?{urllib.parse.urlencode(words)}"
    with urllib.request.urlopen(url, data, timeout=120) as answer:
        return answer.read()


def query(text, data=None):
    return json.loads(ask("query", data, db="d", q=text))["results"][0]


def begin():
    server = start("influxd", "-config", "conf")
    connect(port, server).close()
    return server


def is_as_it_was():
    found = query("select count(v), sum(v) from m")["series"][0]["values"][0][1:]
    return found == [k * 200, sum(range(k * 200))]


server = begin()
query("create database d", b"")
k = 0
print("ready", flush=True)
while k < 100 or not os.path.exists("go"):
    ask("write", "".join(f"m,tag=t{n % 7} v={n}i {n + 1}\n" for n in range(k * 200, k * 200 + 200)).encode(),
        db="d", precision="ns")
    k += 1
print(is_as_it_was())
end(server)
server = begin()
print(is_as_it_was())
end(server)
