# Packages: syncthing python3. Needs: syncthing python3
# Asked over HTTP; watches a folder by inotify and keeps a database.
import json
import os
import time
import urllib.request

from local_server import ask_until_go, connect, end, start

port, here = int(os.environ["PORT"]), os.getcwd()
os.environ.update(HOME=here, STNORESTART="1", STNOUPGRADE="1", STGUIAPIKEY="key")
start("syncthing", "generate", f"--home={here}/home", "--no-default-folder").wait()
conf = open("home/config.xml").read()
for name in ("globalAnnounceEnabled", "localAnnounceEnabled", "relaysEnabled", "natEnabled", "startBrowser", "crashReportingEnabled"):
    conf = conf.replace(f"<{name}>true", f"<{name}>false")
open("home/config.xml", "w").write(conf.replace("<listenAddress>default", "<listenAddress>tcp://127.0.0.1:" + os.environ["PORT2"]))
server = start("syncthing", "serve", f"--home={here}/home", f"--gui-address=127.0.0.1:{port}", "--no-browser", "--no-restart")
connect(port, server).close()


def rest(path, data=None):
    r = urllib.request.Request(f"http://127.0.0.1:{port}/rest/{path}", data and json.dumps(data).encode(), {"X-API-Key": "key"})
    with urllib.request.urlopen(r, timeout=120) as f:
        return json.loads(f.read() or "null")


def await_files(n):
    while rest("db/status?folder=f")["localFiles"] != n:
        time.sleep(0.05)


os.mkdir("folder")
for k in range(30):
    open(f"folder/{k}", "w").write(f"{k}\n" * 1000)
rest("config/folders", {"id": "f", "path": f"{here}/folder", "fsWatcherEnabled": True, "fsWatcherDelayS": 1, "rescanIntervalS": 0})
await_files(30)
ask_until_go(lambda: rest("system/ping"))
for k in range(30, 50):
    open(f"folder/{k}", "w").write(f"{k}\n" * 1000)
await_files(50)
print(rest("db/status?folder=f")["localBytes"])
end(server)
