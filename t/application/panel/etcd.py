# Packages: etcd-server etcd-client. Needs: etcd etcdctl python3
import os
import subprocess
import time

client, peer = os.environ["PORT"], os.environ["PORT2"]
url = f"http://127.0.0.1:{client}"
server = subprocess.Popen(
    ["etcd", "--data-dir", "data", "--listen-client-urls", url, "--advertise-client-urls", url,
     "--listen-peer-urls", f"http://127.0.0.1:{peer}", "--unsafe-no-fsync",
     "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
     "--initial-cluster", f"default=http://127.0.0.1:{peer}"],
    stdout=open("etcd.log", "w"), stderr=subprocess.STDOUT)


def ask(*what):
    return subprocess.run(["etcdctl", "--endpoints", url, *what], capture_output=True, text=True,
                          env={**os.environ, "ETCDCTL_API": "3"})


while ask("endpoint", "health").returncode:
    assert server.poll() is None
    time.sleep(0.1)
for k in range(5):
    assert ask("put", f"key{k}", f"value{k * k}").returncode == 0
watch = subprocess.Popen(["etcdctl", "--endpoints", url, "watch", "watched", "--rev", "1"], text=True,
                         stdout=subprocess.PIPE, env={**os.environ, "ETCDCTL_API": "3"})
while ask("put", "watched", "first").returncode or watch.stdout.readline() != "PUT\n":
    pass
print("ready", flush=True)
while not os.path.exists("go"):
    time.sleep(0.02)
# Without a leader for a while, it may ask for patience.
while ask("put", "watched", "last").returncode:
    assert server.poll() is None
while watch.stdout.readline() != "last\n":
    pass
print(ask("get", "--prefix", "key").stdout)
watch.kill()
server.terminate()
server.wait()
