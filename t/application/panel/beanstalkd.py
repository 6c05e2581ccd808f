# Packages: beanstalkd python3. Needs: beanstalkd python3
# A queue in a log of files: jobs that wait, are delayed, reserved and buried.
import os

from local_server import ask_until_go, connect, end, start

port = int(os.environ["PORT"])
os.mkdir("log")
server = start("beanstalkd", "-l", "127.0.0.1", "-p", str(port), "-b", "log", "-f0")


class Client:
    def __init__(self):
        self.s = connect(port, server)
        self.f = self.s.makefile("rwb")

    def ask(self, line, data=None):
        self.f.write(line + b"\r\n" + (data + b"\r\n" if data is not None else b""))
        self.f.flush()
        return self.f.readline().split()

    def take(self):
        answer = self.ask(b"reserve-with-timeout 60")
        assert answer[0] == b"RESERVED", answer
        return answer[1], self.f.read(int(answer[2]) + 2)[:-2]


boss, worker = Client(), Client()
worker.ask(b"watch jobs")
boss.ask(b"use jobs")
for k in range(500):
    assert boss.ask(b"put %d %d 600 %d" % (k % 7, 100000 if k % 10 == 0 else 0, k % 90 + 1), b"j" * (k % 90 + 1))[0] == b"INSERTED"
held = worker.take()
for _ in range(20):
    number, data = worker.take()
    assert worker.ask(b"bury %s 1" % number) == [b"BURIED"]
other = Client()
other.ask(b"watch other"), other.ask(b"use other")


def ask():
    other.ask(b"put 1 0 60 4", b"more")
    number, data = other.take()
    assert data == b"more" and other.ask(b"delete " + number) == [b"DELETED"]


ask_until_go(ask)
print(held, worker.ask(b"delete " + held[0]), boss.ask(b"kick 20"))
total = []
for _ in range(449):
    number, data = worker.take()
    total.append((number, len(data)))
    worker.ask(b"delete " + number)
print(total)
answer = boss.ask(b"stats-tube jobs")
print([line for line in boss.f.read(int(answer[1]) + 2).split(b"\n") if b"jobs-delayed" in line or b"total-jobs" in line])
end(server)
