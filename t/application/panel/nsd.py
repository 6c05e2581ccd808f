# Packages: nsd python3. Needs: /usr/sbin/nsd python3
# Several processes, each with sockets of its own at the same address (SO_REUSEPORT).
import os
import pwd
import socket
import struct

from local_server import ask_until_go, connect, end, start

here, port = os.getcwd(), int(os.environ["PORT"])
open("zone", "w").write("$ORIGIN test.\n$TTL 600\n@ SOA ns admin 1 600 600 600 600\n@ NS ns\nns A 127.0.0.1\n" + "".join(
    f"h{k} A 10.0.{k // 250}.{k % 250}\n" for k in range(1000)))
open("nsd.conf", "w").write(f"""
server:
    server-count: 3
    reuseport: yes
    ip-address: 127.0.0.1@{port}
    username: {pwd.getpwuid(os.getuid()).pw_name}
    chroot: ""
    zonesdir: "{here}"
    zonelistfile: "{here}/list"
    database: ""
    xfrdfile: "{here}/xfrd"
    xfrdir: "{here}"
    pidfile: "{here}/pid"
    logfile: "{here}/nsd.log"
remote-control:
    control-enable: no
zone:
    name: test
    zonefile: zone
""")
server = start("/usr/sbin/nsd", "-d", "-c", here + "/nsd.conf")
by_tcp = connect(port, server)
number = 0


def question(k):
    name = b"".join(bytes([len(part)]) + part for part in (b"h%d" % k, b"test")) + b"\0"
    return struct.pack(">6H", k, 0, 1, 0, 0, 0) + name + struct.pack(">2H", 1, 1)


def check(k, answer):
    assert answer[:2] == struct.pack(">H", k) and bytes([10, 0, k // 250, k % 250]) in answer


def ask():
    """By TCP in one connection, and by UDP from another port each time, which another process may answer."""
    global number
    number += 1
    k = number % 1000
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("127.0.0.1", port))
        s.send(question(k))
        check(k, s.recv(4096))
    data = question(k)
    by_tcp.sendall(struct.pack(">H", len(data)) + data)
    size, = struct.unpack(">H", by_tcp.recv(2, socket.MSG_WAITALL))
    check(k, by_tcp.recv(size, socket.MSG_WAITALL))


ask_until_go(ask)
for _ in range(1000):
    ask()
by_tcp.close()
end(server)
