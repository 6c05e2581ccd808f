"""multiprocessing: a pool, queues with a consumer that is behind, a manager, a lock, an event and
shared memory. Prints the same each time.

	processes.py METHOD PREFIX	the start method, and how names of semaphores begin
"""
import multiprocessing
import os
import select
import sys


def until_go():
    while not os.path.exists("go"):
        select.select([], [], [], 0.02)


def square(x):
    until_go()
    return x * x


def produce(queue, event, n):
    for i in range(300):
        queue.put((n, i, "x" * (i % 50 * 100)))
        if i == 100:
            event.set()
    queue.put(None)


def count(lock, value, shared, names):
    for i in range(500):
        with lock:
            value.value += 1
            shared[value.value % len(shared)] += i
    names.append(os.getpid() > 1)


def main():
    multiprocessing.current_process()._config["semprefix"] = "/" + sys.argv[2]
    context = multiprocessing.get_context(sys.argv[1])
    queue, event, lock = context.Queue(), context.Event(), context.Lock()
    value, shared = context.Value("i", 0), context.Array("q", 10)
    with context.Manager() as manager, context.Pool(3) as pool:
        names = manager.list()
        squares = pool.map_async(square, range(30), 5)
        producers = [context.Process(target=produce, args=(queue, event, n)) for n in range(3)]
        for p in producers:
            p.start()
        event.wait()
        print("ready", flush=True)
        until_go()
        counters = [context.Process(target=count, args=(lock, value, shared, names))
                    for n in range(2)]
        for p in counters:
            p.start()
        got, ended = [[], [], []], 0
        while ended < 3:
            item = queue.get()
            if item is None:
                ended += 1
            else:
                got[item[0]].append((item[1], len(item[2])))
        for p in producers + counters:
            p.join()
            assert p.exitcode == 0, p.exitcode
        print(all(g == [(i, i % 50 * 100) for i in range(300)] for g in got))
        print(value.value, sum(shared), list(names))
        print(sum(squares.get()), flush=True)


if __name__ == "__main__":
    main()
