# Packages: redis-server; pip:celery, pip:redis. Needs: redis-server, python3:celery, python3:redis
# Workers that fork, with tasks that wait for their time in a broker.
import os
import sys

from local_server import ask_until_go, connect, end, start

port = int(os.environ["PORT"])
open("tasks.py", "w").write(f"""
import celery
app = celery.Celery("tasks", broker="redis://127.0.0.1:{port}/0", backend="redis://127.0.0.1:{port}/1")
@app.task
def work(seed, n):
    for k in range(n):
        seed = (seed * 69069 + k) % 1048576
    return seed
""")
os.environ["PYTHONPATH"] += ":" + os.getcwd()
sys.path.append(os.getcwd())
redis = start("redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
connect(port, redis).close()
workers = start(sys.executable, "-m", "celery", "-A", "tasks", "worker", "-c", "3", "--without-gossip", "--without-mingle", "-l", "error")
from tasks import work  # noqa: E402

assert work.delay(1, 1).get(timeout=300) == 69069
late = [work.apply_async((k, 100), countdown=1) for k in range(20)]


def ask():
    some = [work.delay(k, 500) for k in range(6)]
    for k, one in enumerate(some):
        assert one.get(timeout=300) == work.run(k, 500)


ask_until_go(ask)
print(sum(one.get(timeout=300) for one in late), sum(one.get(timeout=300) for one in [work.delay(k, 20000) for k in range(40)]))
end(workers)
end(redis)
