# Packages: knot-resolver dnsdist pdns-recursor dnsmasq-base python3. Needs: /usr/sbin/kresd dnsdist pdns_recursor /usr/sbin/dnsmasq python3
# Resolvers that ask one server: Knot's and PowerDNS's, each with a cache, and dnsdist, which shares questions out between them.
import os
import socket
import struct
import time

from local_server import ask_until_go, connect, end, start

here = os.getcwd()


def free():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


zone, knot, power, both = int(os.environ["PORT"]), int(os.environ["PORT2"]), free(), free()
open("hosts", "w").write("".join(f"10.0.{k // 250}.{k % 250} h{k}.test\n" for k in range(1000)))
open("kresd.conf", "w").write(f"""
net.listen('127.0.0.1', {knot}, {{ kind = 'dns' }})
modules.unload('ta_update') modules.unload('ta_signal_query') modules.unload('priming') modules.unload('detect_time_skew')
trust_anchors.remove('.')
cache.open(10 * MB, 'lmdb://{here}/cache')
policy.add(policy.suffix(policy.STUB('127.0.0.1@{zone}'), {{ todname('test.') }}))
""")
os.mkdir("recursor")
open("recursor/recursor.conf", "w").write(f"""
local-address=127.0.0.1
local-port={power}
forward-zones=test=127.0.0.1:{zone}
dnssec=off
dont-query=
socket-dir={here}/recursor
threads=2
daemon=no
disable-syslog=yes
write-pid=no
""")
open("dnsdist.conf", "w").write(f"""
setLocal('127.0.0.1:{both}')
newServer({{address='127.0.0.1:{knot}', checkName='h1.test.', checkInterval=1, maxCheckFailures=100}})
newServer({{address='127.0.0.1:{power}', checkName='h1.test.', checkInterval=1, maxCheckFailures=100}})
setServerPolicy(roundrobin)
setSecurityPollSuffix('')
""")
os.mkdir("k")
servers = [start("/usr/sbin/dnsmasq", "-k", "--conf-file=/dev/null", f"--port={zone}", "--listen-address=127.0.0.1",
                 "--bind-interfaces", "--no-resolv", "--no-hosts", f"--addn-hosts={here}/hosts", "--pid-file=", "--user="),
           start("/usr/sbin/kresd", "-n", "-c", f"{here}/kresd.conf", f"{here}/k"),
           start("pdns_recursor", f"--config-dir={here}/recursor"),
           start("dnsdist", "--supervised", "--disable-syslog", "-C", f"{here}/dnsdist.conf")]
ports = [zone, knot, power, both]
for port, server in zip(ports, servers):
    connect(port, server).close()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.settimeout(1)


def question(number, name):
    return (struct.pack(">6H", number, 0x100, 1, 0, 0, 0) +
            b"".join(bytes([len(p)]) + p for p in name.encode().split(b".")) + b"\0\0\1\0\1")


def ask_udp(port, number, name):
    """A server that does not know yet, or a question that is lost: once more."""
    while True:
        udp.sendto(question(number, name), ("127.0.0.1", port))
        try:
            answer = udp.recv(4096)
            if struct.unpack(">H", answer[:2])[0] == number and not answer[3] & 15:
                return answer
            time.sleep(0.05)
        except TimeoutError:
            pass


def ask_tcp(port, server, name):
    c, q = connect(port, server), question(7, name)
    c.sendall(struct.pack(">H", len(q)) + q)
    size = struct.unpack(">H", c.recv(2, socket.MSG_WAITALL))[0]
    return c.recv(size, socket.MSG_WAITALL)


turn = 0


def known(k):
    return socket.inet_aton(f"10.0.{k // 250}.{k % 250}")


def ask():
    global turn
    turn += 1
    k = turn % 1000
    answer = ask_udp(ports[turn % 4], turn % 65536, f"h{k}.test")
    assert known(k) in answer, (turn, answer)


for _ in range(100):
    ask()
ask_until_go(ask)
print([known(k) in ask_tcp(ports[k % 4], servers[k % 4], f"h{k}.test") for k in range(0, 1000, 49)])
for server in servers[::-1]:
    end(server)
