"""Digits of pi, fifty a line, from Gibbons' unbounded spigot. An ordinary program."""

import itertools


def digits():
    q, r, t, k, n, l = 1, 0, 1, 1, 3, 3
    while True:
        if 4 * q + r - t < n * t:
            yield n
            q, r, n = 10 * q, 10 * (r - n * t), 10 * (3 * q + r) // t - 10 * n
        else:
            q, r, t, k, n, l = (q * k, (2 * q + r) * l, t * l, k + 1,
                                (q * (7 * k + 2) + r * l) // (t * l), l + 2)


source = digits()
for line in range(1, 81):
    print(line, "".join(map(str, itertools.islice(source, 50))), flush=True)
print("finished")
