# Packages: bind9 dnsmasq-base unbound python3. Needs: /usr/sbin/named /usr/sbin/dnsmasq /usr/sbin/unbound python3
# Three servers of names: one with a zone, a cache that asks it, and another that asks the cache.
import os
import socket
import struct
import time

from local_server import ask_until_go, connect, end, start

here = os.getcwd()
ports = [int(os.environ["PORT"]), int(os.environ["PORT2"]), 0]
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    ports[2] = s.getsockname()[1]
open("zone", "w").write("$TTL 600\n@ SOA ns admin 1 600 600 600 600\n@ NS ns\nns A 127.0.0.1\n" + "".join(
    f"h{k} A 10.0.{k // 250}.{k % 250}\n" for k in range(1000)))
open("named.conf", "w").write(f"""
options {{ directory "{here}"; pid-file "{here}/pid"; session-keyfile "{here}/key"; recursion no;
    listen-on port {ports[0]} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; }};
controls {{ }};
zone "test" {{ type primary; file "zone"; }};
""")
open("unbound.conf", "w").write(f"""
server:
    interface: 127.0.0.1@{ports[2]}
    directory: "{here}"
    chroot: ""
    username: ""
    pidfile: ""
    use-syslog: no
    do-daemonize: no
    num-threads: 2
    do-not-query-localhost: no
    domain-insecure: "test"
    local-zone: "test" nodefault
    module-config: "iterator"
forward-zone:
    name: "test"
    forward-addr: 127.0.0.1@{ports[1]}
remote-control:
    control-enable: no
""")
servers = [start("/usr/sbin/named", "-g", "-n", "2", "-c", f"{here}/named.conf"),
           start("/usr/sbin/dnsmasq", "-k", "--conf-file=/dev/null", f"--port={ports[1]}", "--listen-address=127.0.0.1",
                 "--bind-interfaces", "--no-resolv", "--no-hosts", f"--server=127.0.0.1#{ports[0]}", "--pid-file=",
                 "--user=", "--cache-size=500"),
           start("/usr/sbin/unbound", "-d", "-c", f"{here}/unbound.conf")]
for port, server in zip(ports, servers):
    connect(port, server).close()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.settimeout(1)


def question(name):
    return (struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) +
            b"".join(bytes([len(p)]) + p for p in name.encode().split(b".")) + b"\0\0\1\0\1")


def ask_udp(port, name):
    """A server that does not know yet, or a question that is lost: once more."""
    while True:
        udp.sendto(question(name), ("127.0.0.1", port))
        try:
            answer = udp.recv(4096)
            if not answer[3] & 15:
                return answer
            time.sleep(0.1)
        except TimeoutError:
            pass


def ask_tcp(c, name):
    q = question(name)
    c.sendall(struct.pack(">H", len(q)) + q)
    size = struct.unpack(">H", c.recv(2, socket.MSG_WAITALL))[0]
    return c.recv(size, socket.MSG_WAITALL)


def known(k):
    return f"10.0.{k // 250}.{k % 250}"


number = 0


def ask():
    global number
    number = (number + 1) % 1000
    answer = ask_udp(ports[number % 3], f"h{number}.test")
    assert socket.inet_aton(known(number)) in answer, (number, answer)


for k in range(300):
    ask()
ask_until_go(ask)
print([socket.inet_aton(known(k)) in ask_tcp(connect(ports[k % 3], servers[k % 3]), f"h{k}.test") for k in range(0, 1000, 50)])
for server in servers:
    end(server)
