# Packages: kamailio python3. Needs: kamailio python3
# A SIP server: processes that share memory and locks and pass connections on; who is where is kept in memory.
import os
import socket

from local_server import ask_until_go, connect, end, start

here, port = os.getcwd(), int(os.environ["PORT"])
open("conf", "w").write(f"""#!KAMAILIO
debug=1
log_stderror=yes
children=3
tcp_children=2
tcp_connection_lifetime=36000
tcp_accept_no_cl=yes
dns=no
auto_aliases=no
listen=udp:127.0.0.1:{port}
listen=tcp:127.0.0.1:{port}
mpath="/usr/lib/x86_64-linux-gnu/kamailio/modules/"
loadmodule "sl.so"
loadmodule "pv.so"
loadmodule "tm.so"
loadmodule "usrloc.so"
loadmodule "registrar.so"
loadmodule "htable.so"
loadmodule "textops.so"
modparam("htable", "htable", "count=>size=4;initval=0;")
modparam("registrar", "default_expires", 36000)
modparam("registrar", "max_expires", 36000)
request_route {{
    if (is_method("REGISTER")) {{
        save("location");
        exit;
    }}
    if (is_method("OPTIONS")) {{
        append_to_reply("Count: $shtinc(count=>$rU)\\r\\n");
        if (lookup("location")) append_to_reply("Place: $ru\\r\\n");
        sl_send_reply("200", "OK");
        exit;
    }}
    sl_send_reply("501", "Not known");
}}
""")
server = start("kamailio", "-DD", "-E", "-f", here + "/conf", "-Y", here, "-P", here + "/pid", "-m", "16", "-M", "4")
by_tcp = connect(port, server)
by_udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
by_udp.connect(("127.0.0.1", port))
turn = 0


def talk(s, method, user, contact=""):
    global turn
    turn += 1
    name = s.getsockname()
    by = "TCP" if s is by_tcp else "UDP"
    s.sendall((f"{method} sip:{user}@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/{by} {name[0]}:{name[1]};branch=z9hG4bK{turn}\r\n"
               f"From: <sip:{user}@127.0.0.1>;tag={turn}\r\nTo: <sip:{user}@127.0.0.1>\r\nCall-ID: {turn}\r\nCSeq: {turn} {method}\r\n"
               f"Max-Forwards: 10\r\n{contact}Content-Length: 0\r\n\r\n").encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        more = s.recv(65536)
        assert more
        answer += more
    assert b"CSeq: %d " % turn in answer and answer.startswith(b"SIP/2.0 200"), answer
    return answer


counts = {}


def ask():
    user = f"u{turn % 7}"
    s = by_tcp if turn % 2 else by_udp
    counts[user] = counts.get(user, 0) + 1
    answer = talk(s, "OPTIONS", user)
    assert b"Count: %d\r\n" % counts[user] in answer and b"Place: sip:%s@10.0.0.1" % user.encode() in answer, answer


by_udp.settimeout(2)
while True:
    try:
        talk(by_udp, "REGISTER", "u0", "Contact: <sip:u0@10.0.0.1>\r\n")
        break
    except (TimeoutError, ConnectionRefusedError):
        assert server.poll() is None
by_udp.settimeout(600)
for n in range(7):
    talk(by_tcp, "REGISTER", f"u{n}", f"Contact: <sip:u{n}@10.0.0.1>\r\n")
ask()
ask_until_go(ask)
for _ in range(200):
    ask()
by_tcp.close()
end(server)
