# Packages: gpsd python3. Needs: /usr/sbin/gpsd python3
# Positions that a device tells (here by TCP) are passed on to three clients, and to others by System V shared memory.
import json
import os
import socket
import threading
import time

from local_server import ask_until_go, connect, end, start

port, feed = int(os.environ["PORT"]), socket.create_server(("127.0.0.1", 0))
position = [0]


def sentence(text):
    check = 0
    for c in text:
        check ^= ord(c)
    return f"${text}*{check:02X}\r\n".encode()


def device():
    """Ten positions a second, each a hundredth of a minute further north."""
    s, _ = feed.accept()
    while True:
        position[0] += 1
        n = position[0]
        clock = f"{n // 36000 % 24:02}{n // 600 % 60:02}{n // 10 % 60:02}.{n % 10}0"
        place = f"{40 + n // 6000 % 40:02}{n // 100 % 60:02}.{n % 100:02}00,N,00800.0000,E"
        try:
            s.sendall(sentence(f"GPGGA,{clock},{place},1,08,1.0,100.0,M,40.0,M,,") +
                      sentence(f"GPRMC,{clock},A,{place},010.0,000.0,271126,,,A"))
        except OSError:
            return
        time.sleep(0.1)


threading.Thread(target=device, daemon=True).start()
server = start("/usr/sbin/gpsd", "-N", "-n", "-S", str(port), f"tcp://127.0.0.1:{feed.getsockname()[1]}")
clients = [connect(port, server).makefile("rw") for _ in range(3)]


def hear(client, kind):
    while True:
        line = client.readline()
        assert line
        report = json.loads(line)
        if report["class"] == kind:
            return report


for client in clients:
    client.write('?WATCH={"enable":true,"json":true};\n')
    client.flush()
    hear(client, "WATCH")


def north(n):
    return 40 + n // 6000 % 40 + (n // 100 % 60 + n % 100 / 100) / 60


def ask():
    for client in clients:
        wanted = north(position[0])
        while hear(client, "TPV").get("lat", 0) < wanted - 1e-6:
            pass


ask()
ask_until_go(ask)
for client in clients:
    client.write("?DEVICES;\n")
    client.flush()
    print(len(hear(client, "DEVICES")["devices"]), hear(client, "TPV")["mode"])
end(server)
