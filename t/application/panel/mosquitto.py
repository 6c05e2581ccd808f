# Packages: mosquitto python3. Needs: /usr/sbin/mosquitto python3
# A broker with retained messages, sessions of clients that are there, and of one that is not.
import os
import struct

from local_server import ask_until_go, connect, end, start

port = int(os.environ["PORT"])
open("conf", "w").write(f"""
listener {port} 127.0.0.1
allow_anonymous true
persistence true
persistence_location {os.getcwd()}/
autosave_interval 1
{"user root" if os.getuid() == 0 else ""}
""")
server = start("/usr/sbin/mosquitto", "-c", "conf")


def text(s):
    return struct.pack(">H", len(s)) + s


class Client:
    def __init__(self, name):
        self.s = connect(port, server)
        self.f = self.s.makefile("rb")
        self.number = 0
        self.send(0x10, text(b"MQTT") + b"\x04\x00\x02\x58" + text(name))
        assert self.receive()[0] == 0x20

    def send(self, kind, data):
        length, size = b"", len(data)
        while True:
            size, low = size // 128, size % 128
            length += bytes([low | (0x80 if size else 0)])
            if not size:
                break
        self.s.sendall(bytes([kind]) + length + data)

    def receive(self):
        kind, size, shift = self.f.read(1)[0], 0, 0
        while True:
            byte = self.f.read(1)[0]
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return kind, self.f.read(size)

    def subscribe(self, topic):
        self.send(0x82, b"\0\1" + text(topic) + b"\1")
        assert self.receive()[0] == 0x90

    def publish(self, topic, data, retain=False):
        self.number = self.number % 60000 + 1
        self.send(0x32 | retain, text(topic) + struct.pack(">H", self.number) + data)
        assert self.receive() == (0x40, struct.pack(">H", self.number))

    def next(self):
        kind, data = self.receive()
        assert kind & 0xf0 == 0x30
        size = struct.unpack(">H", data[:2])[0]
        self.send(0x40, data[2 + size:4 + size])
        return data[2:2 + size], data[4 + size:]


away = Client(b"away")
away.subscribe(b"kept/#")
away.s.shutdown(1), away.f.read()
sender, receivers = Client(b"sender"), [Client(b"r%d" % k) for k in range(4)]
for k, r in enumerate(receivers):
    r.subscribe(b"to/%d/#" % k)
for k in range(200):
    sender.publish(b"kept/%d" % (k % 20), b"v%d" % k, retain=True)


def ask():
    for k, r in enumerate(receivers):
        sender.publish(b"to/%d/a" % k, b"hello" * 100)
        assert r.next() == (b"to/%d/a" % k, b"hello" * 100)


ask_until_go(ask)
away = Client(b"away")
print(sorted(away.next() for _ in range(200)))
late = Client(b"late")
late.send(0x82, b"\0\1" + text(b"kept/#") + b"\1")
got = [late.receive() for _ in range(21)]
print(sorted(data.split(b"v")[-1] for kind, data in got if kind & 0xf0 == 0x30))
end(server)
