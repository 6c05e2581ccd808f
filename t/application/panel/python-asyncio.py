# Packages: python3. Needs: python3
# A server and clients in one loop, a subprocess, timers, threads.
import asyncio
import os
import sys


async def serve(reader, writer):
    while line := await reader.readline():
        writer.write(b"%d\n" % (int(line) ** 2))
        await writer.drain()
    writer.close()


async def client(port, number, started):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    total = k = 0
    while k < 200 or not os.path.exists("go"):
        k += 1
        writer.write(b"%d\n" % (k + number))
        answer = int(await asyncio.wait_for(reader.readline(), 60))
        assert answer == (k + number) ** 2
        if k <= 200:
            total += answer
        if k == 100:
            started.release()
        if k > 200:
            await asyncio.sleep(0.002)
    writer.close()
    return total


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    started = asyncio.Semaphore(0)
    clients = [asyncio.create_task(client(port, n, started)) for n in range(20)]
    cat = await asyncio.create_subprocess_exec(
        "cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    for _ in clients:
        await started.acquire()
    print("ready", flush=True)
    totals = await asyncio.gather(*clients)
    out, _ = await cat.communicate(b"through the child")
    slow = await asyncio.get_running_loop().run_in_executor(None, sum, range(100000))
    print(sum(totals), out, cat.returncode, slow)

asyncio.run(main())
