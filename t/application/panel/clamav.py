# Packages: clamav-daemon python3. Needs: clamd python3. Options: --save-dirs=tmp
# A scanner with a database of its own, in threads. It writes what it scans to files that it removes.
import os
import socket
import struct

from local_server import ask_until_go, connect, end, start

port, here = int(os.environ["PORT"]), os.getcwd()
os.mkdir("db"), os.mkdir("tmp")
os.chmod(here, 0o755)
with open("db/test.ndb", "w") as f:
    for k in range(3000):
        f.write(f"Test.Kind{k}:0:*:{(b'pattern number %d of all;' % k).hex()}\n")
open("conf", "w").write(f"""TCPSocket {port}
TCPAddr 127.0.0.1
LocalSocket {here}/s
DatabaseDirectory {here}/db
TemporaryDirectory {here}/tmp
Foreground yes
LogFile {here}/log
MaxThreads 4
SelfCheck 0
""")
server = start("clamd", "-c", f"{here}/conf")


def scan(c, data):
    c.sendall(b"zINSTREAM\0" + struct.pack(">I", len(data)) + data + struct.pack(">I", 0))
    answer = b""
    while not answer.endswith(b"\0"):
        got = c.recv(1000)
        assert got, open("log").read()[-500:]
        answer += got
    return answer.split(b": ")[-1][:-1].decode()


session = connect(port, server)
session.settimeout(300)
session.sendall(b"zIDSESSION\0")
turn = 0


def ask():
    global turn
    turn += 1
    bad = turn % 3
    data = b"%d words\n" % turn * 5000 + (b"pattern number %d of all;" % (turn % 3000) if bad else b"")
    answer = scan(session, data)
    assert answer == (f"Test.Kind{turn % 3000}.UNOFFICIAL FOUND" if bad else "OK"), (turn, answer)


ask_until_go(ask)
local = socket.socket(socket.AF_UNIX)
while local.connect_ex("s"):  # it is made, and then opened to all, behind the other
    assert server.poll() is None
open("file", "wb").write(b"x" * 100000 + b"pattern number 77 of all;")
os.chmod("file", 0o644)
local.sendall(b"zSCAN %s/file\0" % here.encode())
print(local.recv(1000).split(b": ")[-1], scan(session, b"nothing"))
session.close()
end(server)
