# Packages: python3-gevent python3-trio. Needs: python3, python3:gevent, python3:trio
# Greenlets, whose stacks are copied and exchanged, and trio's tasks with threads, both over sockets.
import os
import subprocess
import sys

GO = "go"


def with_gevent(port):
    import gevent.pool
    import gevent.server
    import gevent.socket
    import gevent.threadpool

    sums = {}

    def serve(s, address):
        with s.makefile("rwb") as f:
            for line in f:
                f.write(b"%d\n" % (int(line) ** 2 % 1000003))
                f.flush()

    server = gevent.server.StreamServer(("127.0.0.1", port), serve)
    server.start()

    def client(n):
        c = gevent.socket.create_connection(("127.0.0.1", port))
        f = c.makefile("rwb")
        x = k = n
        while not (os.path.exists(GO) and k >= 2000):
            x = n if k % 500 == 0 else x
            f.write(b"%d\n" % x)
            f.flush()
            x = int(f.readline()) + n
            k += 1
            gevent.sleep(0.001 if k > 2000 else 0)
            if k == 2000:
                sums[n] = x
        c.close()

    pool = gevent.pool.Pool()
    for n in range(1, 9):
        pool.spawn(client, n)
    threads = gevent.threadpool.ThreadPool(2)
    powers = threads.map(lambda x: pow(x, 100000, 1000003), range(40))
    print("ready", flush=True)
    pool.join()
    print(sorted(sums.items()), sum(powers), sum(threads.map(lambda x: x * x, range(100))))
    server.stop()


def with_trio():
    import trio

    async def main():
        results = []
        into, out = trio.open_memory_channel(5)

        async def produce(n):
            with trio.CancelScope() as scope:
                k = 0
                while not (os.path.exists(GO) and k > 100):
                    if k < 100:
                        await into.send(n * k)
                    else:
                        await trio.sleep(0.01)
                    k += 1
                scope.cancel()
                await trio.sleep_forever()

        async def consume():
            for _ in range(400):
                results.append(await trio.to_thread.run_sync(lambda x: x * x, await out.receive()))

        async with trio.open_nursery() as nursery:
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            port = listeners[0].socket.getsockname()[1]

            async def echo(stream):
                async for data in stream:
                    await stream.send_all(data.upper())

            nursery.start_soon(trio.serve_listeners, echo, listeners)
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            async with trio.open_nursery() as inner:
                for n in range(4):
                    inner.start_soon(produce, n)
                inner.start_soon(consume)
                while not os.path.exists(GO):
                    await stream.send_all(b"word")
                    assert await stream.receive_some() == b"WORD"
                    await trio.sleep(0.005)
            nursery.cancel_scope.cancel()
        print(len(results), sum(results))
        done = await trio.run_process(["echo", "child"], capture_stdout=True)
        print(done.stdout)

    trio.run(main)


if len(sys.argv) > 1:
    with_trio()
    sys.exit(0)
other = subprocess.Popen([sys.executable, __file__, "trio"])
with_gevent(int(os.environ["PORT"]))
print(other.wait())
