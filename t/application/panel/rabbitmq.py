# Packages: rabbitmq-server python3. Needs: /usr/lib/rabbitmq/bin/rabbitmq-server python3. Options: --save-files
# A node with durable queues, spoken to by STOMP.
import glob
import os
import socket
import subprocess
import time

here = os.getcwd()
port = int(os.environ["PORT"])
os.mkdir("log")
open("plugins", "w").write("[rabbitmq_stomp].\n")
open("rabbitmq.conf", "w").write(f"""listeners.tcp = none
stomp.listeners.tcp.1 = 127.0.0.1:{port}
""")
environment = dict(
    os.environ, HOME=here, RABBITMQ_BASE=here, RABBITMQ_MNESIA_BASE=here + "/data",
    RABBITMQ_LOG_BASE=here + "/log", RABBITMQ_ENABLED_PLUGINS_FILE=here + "/plugins",
    RABBITMQ_CONFIG_FILE=here + "/rabbitmq.conf", RABBITMQ_NODENAME="t@localhost",
    RABBITMQ_DIST_PORT=os.environ["PORT2"], ERL_EPMD_PORT=str(int(os.environ["PORT2"]) + 1),
    RABBITMQ_FEATURE_FLAGS_FILE=here + "/flags", RABBITMQ_PID_FILE=here + "/pid",
    RABBITMQ_CONF_ENV_FILE="/dev/null", ERL_EPMD_ADDRESS="127.0.0.1")
server = subprocess.Popen(["/usr/lib/rabbitmq/bin/rabbitmq-server"], env=environment,
                          stdin=subprocess.DEVNULL, stdout=open("rabbit.out", "w"), stderr=subprocess.STDOUT)


class Stomp:
    def __init__(self):
        while True:
            self.s = socket.socket()
            if not self.s.connect_ex(("127.0.0.1", port)):
                break
            assert server.poll() is None
            time.sleep(0.1)
        self.f = self.s.makefile("rwb")
        self.send("CONNECT", {"accept-version": "1.2", "host": "/", "login": "guest", "passcode": "guest"})
        assert self.frame()[0] == "CONNECTED"

    def send(self, command, headers, body=b""):
        self.f.write(("\n".join([command] + [f"{k}:{v}" for k, v in headers.items()]) + "\n\n").encode()
                     + body + b"\0")
        self.f.flush()

    def frame(self):
        text = b""
        while (c := self.f.read(1)) != b"\0":
            text += c
        head, _, body = text.lstrip(b"\n").partition(b"\n\n")
        return head.split(b"\n")[0].decode(), body

    def publish(self, queue, body):
        self.send("SEND", {"destination": queue, "receipt": "r", "persistent": "true"}, body)
        assert self.frame()[0] == "RECEIPT"


a, b = Stomp(), Stomp()
for k in range(300):
    a.publish("/queue/kept", b"message %d" % k)
b.send("SUBSCRIBE", {"id": "1", "destination": "/queue/busy", "ack": "auto"})
print("ready", flush=True)
k = 0
while k < 50 or not os.path.exists("go"):
    k += 1
    a.publish("/queue/busy", b"%d" % k)
    assert b.frame() == ("MESSAGE", b"%d" % k)
b.send("SUBSCRIBE", {"id": "2", "destination": "/queue/kept", "ack": "auto"})
print([b.frame() for _ in range(300)] == [("MESSAGE", b"message %d" % k) for k in range(300)])
server.terminate()
print(server.wait())
subprocess.run(glob.glob("/usr/lib/erlang/erts-*/bin/epmd")[:1] + ["-kill"], env=environment,
               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
