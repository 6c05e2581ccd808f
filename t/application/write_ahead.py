# Processes that write to one SQLite database in WAL mode: they have it mapped, and lock it.
import os
import sqlite3
import time

WRITERS = 3
ROWS = 200


def connect():
    return sqlite3.connect("data", timeout=60, isolation_level=None)


def write(writer):
    """Until told to stop; a second connection holds on to what it saw some time ago."""
    database, reader = connect(), connect()
    row = 0
    while row < ROWS or not os.path.exists("go"):
        if row % 50 == 0:
            if row:
                reader.execute("commit")
            reader.execute("begin")
            reader.execute("select count(*) from t").fetchone()
        database.execute("begin immediate")
        database.execute("insert into t values (?, ?)", (writer, row))
        database.execute("commit")
        row += 1
        if row == 10:
            os.write(report, b"x")
        time.sleep(0.001)


database = connect()
database.execute("pragma journal_mode = wal")
database.execute("create table t (writer int, row int)")
reports, report = os.pipe()
children = []
for writer in range(WRITERS):
    child = os.fork()
    if not child:
        write(writer)
        os._exit(0)
    children.append(child)
for _ in children:
    os.read(reports, 1)
print("ready", flush=True)
for child in children:
    print(os.waitpid(child, 0)[1])
for writer in range(WRITERS):
    rows = database.execute("select row from t where writer = ? order by row", (writer,))
    found = [row for row, in rows]
    print(found == list(range(len(found))))
print(database.execute("pragma integrity_check").fetchone()[0])
