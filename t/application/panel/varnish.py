# Packages: varnish python3. Needs: varnishd varnishadm gcc python3
# A cache that maps its log and runs what it has compiled; objects stay in it.
import os
import subprocess

from local_http import connect, get, serve_behind

here = os.getcwd()
port, behind = int(os.environ["PORT"]), int(os.environ["PORT2"])
made = {}


def contents(path):
    return (path * 3000).encode()


def make(path):
    made[path] = made.get(path, 0) + 1
    return contents(path)


def is_right(c, path):
    return get(c, path) == contents(path)


serve_behind(behind, make, {"Cache-Control": "max-age=100000"})
cache = subprocess.Popen([
    "varnishd", "-F", "-j", "none", "-n", f"{here}/n", "-a", f"127.0.0.1:{port}",
    "-b", f"127.0.0.1:{behind}", "-s", "malloc,16m", "-p", "thread_pool_min=10"],
    stdout=open("varnish.out", "w"), stderr=subprocess.STDOUT)


kept = [connect(port, cache) for _ in range(4)]
for k in range(100):
    assert is_right(kept[k % 4], f"/{k % 50}")
print("ready", flush=True)
k = 0
while not os.path.exists("go"):
    k += 1
    assert is_right(kept[k % 4], f"/{k % 50}")
print([is_right(c, f"/{k}") for c in kept for k in range(50)].count(True), set(made.values()))
print(subprocess.run(["varnishadm", "-n", f"{here}/n", "status"], capture_output=True, text=True).stdout)
cache.terminate()
print(cache.wait())
