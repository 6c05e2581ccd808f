# Packages: samba smbclient python3. Needs: /usr/sbin/smbd smbclient python3. Options: --save-files
# A file server: a process for each client, databases that they map, with locks in them.
import os
import pty
import pwd
import subprocess

from local_server import ask_until_go, connect, end, start

port, here, me = int(os.environ["PORT"]), os.getcwd(), pwd.getpwuid(os.getuid()).pw_name
for name in ("share", "private", "state", "cache", "lock", "pid", "ncalrpc"):
    os.mkdir(name)
os.chmod(here, 0o755)
open("conf", "w").write(f"""[global]
smb ports = {port}
interfaces = lo
bind interfaces only = yes
private dir = {here}/private
state directory = {here}/state
cache directory = {here}/cache
lock directory = {here}/lock
pid directory = {here}/pid
ncalrpc dir = {here}/ncalrpc
log file = {here}/log.%m
guest account = {me}
map to guest = Bad User
server role = standalone server
disable spoolss = yes
load printers = no
printing = bsd
rpc start on demand helpers = no
[share]
path = {here}/share
guest ok = yes
read only = no
""")
for k in range(3):
    open(f"share/f{k}", "wb").write(b"%d\n" % k * 50000)
server = start("/usr/sbin/smbd", "-F", "--no-process-group", "-s", f"{here}/conf")
connect(port, server).close()
os.environ["HOME"] = here


class Client:
    """On a terminal: smbclient reads no commands from a pipe."""
    def __init__(self):
        self.fd, end = pty.openpty()
        self.p = subprocess.Popen(["smbclient", "-N", "-s", f"{here}/conf", "-p", str(port), "//127.0.0.1/share"],
                                  stdin=end, stdout=end, stderr=end, start_new_session=True)
        os.close(end)
        self.heard = b""
        self.hear()

    def hear(self):
        while not self.heard.endswith(b"> "):
            self.heard += os.read(self.fd, 10000)
        heard, self.heard = self.heard, b""
        return heard.decode()

    def say(self, line):
        os.write(self.fd, line.encode() + b"\n")
        while True:
            heard = self.hear()
            if line in heard.replace("\r", ""):
                return heard


clients = [Client() for k in range(2)]


def ask():
    for k, one in enumerate(clients):
        assert "f2" in one.say("ls")
        one.say(f"get f{k} got{k}")
        assert os.path.getsize(f"got{k}") == 100000


ask()
ask_until_go(ask)
clients[0].say("mkdir folder")
clients[0].say("put got1 folder\\new")
while not os.path.exists("share/folder/new") or os.path.getsize("share/folder/new") < 100000:
    clients[0].say("ls")
print("new" in clients[1].say("ls folder\\*"), open("share/folder/new", "rb").read() == open("share/f1", "rb").read())
print("NT_STATUS_OBJECT_NAME_NOT_FOUND" in clients[1].say("get nothing"))
for one in clients:
    os.write(one.fd, b"quit\n")
    print(one.p.wait())
end(server)
