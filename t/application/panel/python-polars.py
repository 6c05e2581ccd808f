# Packages: polars (PyPI). Needs: python3:polars
# A pool of Rust threads that computes while it is saved.
import os
import polars

table = polars.DataFrame({"k": [i * 7919 % 1009 for i in range(200000)],
                          "x": [i * 31 % 10007 for i in range(200000)]})


def work(t):
    return (t.lazy().filter(polars.col("x") % 3 != 0).group_by("k")
            .agg(polars.col("x").sum().alias("s"), polars.col("x").max().alias("m"))
            .join(t.lazy(), on="k").with_columns((polars.col("s") * polars.col("x")).alias("p"))
            .group_by("m").agg(polars.col("p").sum()).sort("m").collect())


first = work(table)
print("ready", flush=True)
while not os.path.exists("go"):
    assert work(table).equals(first)
print(first.hash_rows(seed=1).sum() == work(table).hash_rows(seed=1).sum(), first.sum())
