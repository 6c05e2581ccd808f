# Packages: uvloop, aiohttp (PyPI). Needs: python3:uvloop, python3:aiohttp
# libuv's loop with a web server, web sockets, and a subprocess.
import asyncio
import os
import aiohttp
import aiohttp.web
import uvloop


async def square(request):
    return aiohttp.web.json_response(int(request.query["n"]) ** 2)


async def echo(request):
    ws = aiohttp.web.WebSocketResponse()
    await ws.prepare(request)
    async for message in ws:
        await ws.send_str(message.data[::-1])
    return ws


async def main():
    app = aiohttp.web.Application()
    app.add_routes([aiohttp.web.get("/square", square), aiohttp.web.get("/echo", echo)])
    runner = aiohttp.web.AppRunner(app)
    await runner.setup()
    site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    base = "http://127.0.0.1:%d" % site._server.sockets[0].getsockname()[1]
    cat = await asyncio.create_subprocess_exec(
        "cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    async with aiohttp.ClientSession() as session:
        sockets = [await session.ws_connect(base + "/echo") for _ in range(10)]

        async def turn(k):
            async with session.get(base + "/square", params={"n": k}) as r:
                assert await r.json() == k * k
            ws = sockets[k % 10]
            await ws.send_str("abc%d" % k)
            assert await ws.receive_str() == ("abc%d" % k)[::-1]
            cat.stdin.write(b"x\n")
            assert await asyncio.wait_for(cat.stdout.readline(), 60) == b"x\n"

        for k in range(100):
            await turn(k)
        print("ready", flush=True)
        while not os.path.exists("go"):
            await turn(7)
            await asyncio.sleep(0.01)
        for k in range(100):
            await turn(k)
        for ws in sockets:
            await ws.close()
    cat.stdin.close()
    print("done", await cat.wait())
    await runner.cleanup()

uvloop.install()
asyncio.run(main())
