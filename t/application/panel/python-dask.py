# Packages: python3-dask python3-distributed. Needs: python3, python3:distributed
import os

from dask.distributed import Client


def square(x):
    return x * x % 1009


if __name__ == "__main__":
    client = Client(n_workers=2, threads_per_worker=2, dashboard_address=None)
    kept = client.map(square, range(100))
    first = client.submit(sum, kept).result()
    print("ready", flush=True)
    while not os.path.exists("go"):
        client.submit(square, 3, pure=False).result()
    print(first, client.submit(sum, client.map(lambda x: x + 1, kept)).result())
    client.close()
