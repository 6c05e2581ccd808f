# Packages: prometheus python3. Needs: prometheus python3
# A database of times in Go, with files that it maps, which asks a server of ours and writes what it hears.
import json
import os
import time
import urllib.request

from local_http import serve_behind
from local_server import ask_until_go, connect, end, start

port, behind = int(os.environ["PORT"]), int(os.environ["PORT2"])
asked = 0


def contents(path):
    global asked
    asked += 1
    return b"asked_total %d\nsteady{of=\"it\"} 42\n" % asked


serve_behind(behind, contents, {"Content-Type": "text/plain"})
open("conf", "w").write(f"""
global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}
scrape_configs: [{{job_name: ours, static_configs: [{{targets: ["127.0.0.1:{behind}"]}}]}}]
""")
server = start("prometheus", "--config.file=conf", "--storage.tsdb.path=data",
               f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn")
connect(port, server).close()


def ask(what="steady"):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query={what}", timeout=60) as f:
        return json.load(f)["data"]["result"]


def settle(turn):
    """Until it has asked once more."""
    had = asked
    while asked == had:
        time.sleep(0.02)
        ask()


settle(0)
settle(0)
ask_until_go(ask)
settle(0)
settle(0)
print(ask()[0]["value"][1], ask("count_over_time(steady[1h])>bool(2)")[0]["value"][1])
end(server)
