# Packages: prosody python3. Needs: prosody prosodyctl python3. Options: --save-files
# A chat server in Lua, with two clients that write to each other.
import base64
import os
import re
import subprocess

from local_server import ask_until_go, connect, end, start

port, here = int(os.environ["PORT"]), os.getcwd()
os.mkdir("data")
open("conf.cfg.lua", "w").write(f"""
pidfile = "{here}/pid"
data_path = "{here}/data"
daemonize = false
interfaces = {{ "127.0.0.1" }}
c2s_ports = {{ {port} }}
s2s_ports = {{}}
c2s_require_encryption = false
allow_unencrypted_plain_auth = true
authentication = "internal_plain"
modules_enabled = {{ "saslauth"; "roster"; "disco"; "offline"; "time" }}
modules_disabled = {{ "s2s"; "tls" }}
run_as_root = true
log = "{here}/log"
VirtualHost "test"
""")
for name in "ab":
    subprocess.run(["prosodyctl", "--config", f"{here}/conf.cfg.lua", "register", name, "test", "p"], check=True, stdout=subprocess.DEVNULL)
server = start("prosody", "--config", f"{here}/conf.cfg.lua", "-F")


class Client:
    def __init__(self, name):
        self.c, self.heard = connect(port, server), ""
        self.c.settimeout(120)
        self.stream("</stream:features>")
        self.say("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>%s</auth>" % base64.b64encode(b"\0%c\0p" % ord(name)).decode(), "<success")
        self.stream("</stream:features>")
        self.say("<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>r</resource></bind></iq><presence/>", "</iq>")

    def stream(self, until):
        self.say("<?xml version='1.0'?><stream:stream to='test' version='1.0' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>", until)

    def say(self, text, until=None):
        self.c.sendall(text.encode())
        return self.hear(until) if until else None

    def hear(self, until):
        while until not in self.heard:
            data = self.c.recv(65536)
            assert data
            self.heard += data.decode()
        at = self.heard.index(until) + len(until)
        heard, self.heard = self.heard[:at], self.heard[at:]
        return heard


a, b = Client("a"), Client("b")
turn = 0


def ask():
    global turn
    turn += 1
    a.say(f"<message to='b@test/r' type='chat'><body>turn {turn} {'x' * 500}</body></message>")
    assert re.search(r"<body>turn (\d+) x{500}</body>", b.hear("</message>")).group(1) == str(turn)


ask_until_go(ask)
ask()
b.say("</stream:stream>", "</stream:stream>")
b.c.close()
a.say("<message to='b@test' type='chat'><body>kept for later</body></message>")
print(a.say("<iq type='get' id='t' to='test'><query xmlns='http://jabber.org/protocol/disco#info'/></iq>", "</iq>").count("<feature"))
print(re.search("<body>(.*)</body>", Client("b").hear("</message>")).group(1))
end(server)
