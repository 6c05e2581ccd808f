# Packages: proftpd-core python3. Needs: proftpd python3
# A process for each client, with shared memory (a scoreboard) and transfers under way.
import crypt
import ftplib
import grp
import hashlib
import io
import os
import pwd

from local_server import ask_until_go, connect, end, start

port, here = int(os.environ["PORT"]), os.getcwd()
os.mkdir("files")
os.chmod("files", 0o777), os.chmod(".", 0o755)
data = hashlib.shake_128(b"seed").digest(3000000)
open("files/data", "wb").write(data)
uid = os.getuid() or 65534
open("passwd", "w").write(f"u:{crypt.crypt('p', '$6$abcdefgh')}:{uid}:{os.getgid() or 65534}::{here}/files:/bin/sh\n")
os.chmod("passwd", 0o600)
who = "" if not os.getuid() else f"User {pwd.getpwuid(uid).pw_name}\nGroup {grp.getgrgid(os.getgid()).gr_name}\n"
open("conf", "w").write(f"""ServerType standalone
Port {port}
DefaultAddress 127.0.0.1
SocketBindTight on
UseReverseDNS off
ScoreboardFile {here}/score
PidFile {here}/pid
DelayEngine off
AuthUserFile {here}/passwd
AuthOrder mod_auth_file.c
RequireValidShell off
SystemLog {here}/log
TransferLog none
WtmpLog off
AllowRetrieveRestart on
TransferRate RETR 20000
TimeoutIdle 0
TimeoutNoTransfer 0
TimeoutStalled 0
{who}""")
server = start("proftpd", "-n", "-c", f"{here}/conf")


def client():
    connect(port, server).close()
    c = ftplib.FTP()
    c.connect("127.0.0.1", port, timeout=300)
    c.login("u", "p")
    c.voidcmd("TYPE I")
    return c


clients = [client() for k in range(3)]
slow = clients[0].transfercmd("RETR data")
got = [slow.recv(100000)]


def ask():
    got.append(slow.recv(1000))
    assert clients[1].size("data") == len(data) and clients[2].pwd().startswith("/")


ask_until_go(ask)
while sum(map(len, got)) < 1000000:
    got.append(slow.recv(100000))
print(all(one == two for one, two in zip(b"".join(got), data)))
slow.close()
clients[1].storbinary("STOR new", io.BytesIO(data[:5000]))
part = []
clients[2].retrbinary("RETR data", part.append, rest=len(data) - 3000)
print(b"".join(part) == data[-3000:], open("files/new", "rb").read() == data[:5000], sorted(clients[1].nlst()))
for c in clients[1:]:
    print(c.quit())
clients[0].close()
end(server)
