# Packages: pip:ray. Needs: python3, python3:ray
import os

import ray

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _temp_dir=os.path.abspath("r"))


@ray.remote
class Counter:
    def __init__(self):
        self.n = 0

    def add(self, k):
        self.n += k
        return self.n


@ray.remote
def square(x):
    return x * x


counter = Counter.remote()
for k in range(50):
    ray.get(counter.add.remote(k))
kept = ray.put(list(range(100000)))
print("ready", flush=True)
while not os.path.exists("go"):
    ray.get(square.remote(3))
print(ray.get(counter.add.remote(1)), sum(ray.get(kept)), sum(ray.get([square.remote(k) for k in range(20)])))
