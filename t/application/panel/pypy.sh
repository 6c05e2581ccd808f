#!/bin/bash
# Packages: pypy3. Needs: pypy3
# PyPy: a compiler that writes machine code as it goes, threads, and a collector that moves objects.
cat >work.py <<'END'
import threading

found = [0] * 4


def work(n):
    s, d = n, {}
    for k in range(2500000):
        s = (s * 31 + k) % 1000003
        d[s % 5003] = (k, str(s))
    found[n] = (s, len(d), sum(int(v[1]) for v in d.values()))


print("ready", flush=True)
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(found)
END
pypy3 work.py
echo "status $?"
