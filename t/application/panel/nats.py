# Packages: nats-server python3. Needs: nats-server python3
# A server in Go that keeps streams in files; subscribers with messages under way.
import json
import os
import socket
import subprocess
import time

port = int(os.environ["PORT"])
server = subprocess.Popen(["nats-server", "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", "data"],
                          stderr=open("nats.log", "w"))


class Client:
    def __init__(self):
        while True:
            self.s = socket.socket()
            if not self.s.connect_ex(("127.0.0.1", port)):
                break
            assert server.poll() is None
            time.sleep(0.05)
        self.f = self.s.makefile("rwb")
        self.f.readline()
        self.send(b'CONNECT {"verbose":false}', b"SUB in.%d 1" % id(self))

    def send(self, *lines):
        for line in lines:
            self.f.write(line + b"\r\n")
        self.f.flush()

    def receive(self):
        while True:
            head = self.f.readline().split()
            if head[0] == b"PING":
                self.send(b"PONG")
            elif head[0] == b"MSG":
                data = self.f.read(int(head[-1]))
                self.f.readline()
                return data
            else:
                assert head[0] in (b"INFO", b"PONG", b"+OK"), head

    def publish(self, subject, data, answer=b""):
        self.send(b"PUB %s %s %d" % (subject, answer, len(data)), data)

    def ask(self, subject, data=b""):
        self.publish(subject, data, b"in.%d" % id(self))
        return json.loads(self.receive())


a, b = Client(), Client()
a.ask(b"$JS.API.STREAM.CREATE.s", json.dumps({"name": "s", "subjects": ["s.>"], "storage": "file"}).encode())
for k in range(500):
    assert a.ask(b"s.x", b"kept %d" % k)["seq"] == k + 1
b.send(b"SUB busy 2")
b.send(b"PING")
assert b.f.readline() == b"PONG\r\n"
print("ready", flush=True)
k = 0
while k < 50 or not os.path.exists("go"):
    k += 1
    a.publish(b"busy", b"%d" % k)
    assert b.receive() == b"%d" % k
    time.sleep(0.002)
answer = a.ask(b"$JS.API.STREAM.INFO.s")
print(answer["state"]["messages"], answer["state"]["last_seq"])
print(a.ask(b"$JS.API.STREAM.MSG.GET.s", b'{"seq": 17}')["message"]["data"])
server.terminate()
print(server.wait())
