# Packages: python3. Needs: python3
# Journal mode WAL: mapped shared memory with POSIX locks on it, in two processes.
import os
import sqlite3


def connect():
    c = sqlite3.connect("data", timeout=60, isolation_level=None)
    c.execute("pragma journal_mode = wal")
    c.execute("pragma synchronous = off")
    return c


first = connect()
first.execute("create table t (who int, n int)")
first.close()
told, tell = os.pipe()
child = os.fork()
db = connect()
for n in range(500):
    db.execute("insert into t values (?, ?)", (child != 0, n))
if not child:
    os.write(tell, b"x")
    while not os.path.exists("go"):
        db.execute("select sum(n) from t").fetchone()
    for n in range(500):
        db.execute("insert into t values (2, ?)", (n,))
    os._exit(0)
os.read(told, 1)
db.execute("begin immediate")
db.execute("insert into t values (3, 1)")
print("ready", flush=True)
while not os.path.exists("go"):
    db.execute("select count(*) from t").fetchone()
db.execute("commit")
status = os.waitpid(child, 0)[1]
print(status, db.execute("select who, count(*), sum(n) from t group by who").fetchall(),
      db.execute("pragma integrity_check").fetchone())
