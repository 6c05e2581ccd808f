# Packages: duckdb (PyPI). Needs: python3:duckdb
# A database in a file with a log, and queries by several threads.
import os
import duckdb

c = duckdb.connect("data.duckdb", config={"threads": 4})
c.execute("create table t as select i, i * 7919 % 1009 k, hash(i) h from range(300000) r(i)")
c.execute("create table log(n int)")
inserted = 0
question = "select k, count(*), sum(i), max(h) from t group by k order by k limit 5"
first = c.execute(question).fetchall()
c.execute("begin")
c.execute("delete from t where k < 100")
print("ready", flush=True)
d = c.cursor()
while not os.path.exists("go"):
    assert d.execute(question).fetchall() == first
    d.execute("insert into log values (?)", [inserted])
    inserted += 1
c.execute("commit")
print(c.execute("select count(*), sum(i) from t").fetchall())
print(c.execute("select count(*) = ? from log", [inserted]).fetchall())
c.execute("checkpoint")
c.close()
print(duckdb.connect("data.duckdb").execute("select count(*), sum(k) from t").fetchall())
