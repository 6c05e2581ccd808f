# Packages: ngircd python3. Needs: /usr/sbin/ngircd python3
# A server of conversations, with people in rooms who have been asked to be quiet.
import os
import pwd

from local_server import ask_until_go, connect, end, start

port = int(os.environ["PORT"])
open("conf", "w").write(f"""
[Global]
Name = irc.test
Info = test
Listen = 127.0.0.1
Ports = {port}
{"ServerUID = " + pwd.getpwuid(os.getuid()).pw_name if os.getuid() else ""}
[Limits]
MaxConnectionsIP = 0
PingTimeout = 3600
[Options]
DNS = no
Ident = no
PAM = no
""")
os.chmod("conf", 0o644)
server = start("/usr/sbin/ngircd", "-n", "-f", os.path.abspath("conf"))


class Person:
    def __init__(self, name):
        self.name = name
        self.f = connect(port, server).makefile("rwb")
        self.say(b"NICK " + name, b"USER u 0 * :" + name)
        self.hear(b" 376 ", b" 422 ")

    def say(self, *lines):
        self.f.write(b"".join(line + b"\r\n" for line in lines))
        self.f.flush()

    def hear(self, *words):
        while True:
            line = self.f.readline()
            assert line
            if any(word in line for word in words):
                return line.strip()


people = [Person(b"p%d" % k) for k in range(12)]
for k, p in enumerate(people):
    p.say(b"JOIN #room%d" % (k % 3))
    p.hear(b" 366 ")
people[0].say(b"TOPIC #room0 :what is to be kept")
people[0].hear(b"TOPIC")
turn = 0


def ask():
    global turn
    turn += 1
    for room in range(3):
        text = b"turn %d " % turn + b"x" * 300
        people[room].say(b"PRIVMSG #room%d :" % room + text)
        for k in range(room + 3, 12, 3):
            assert text in people[k].hear(b"PRIVMSG")


ask_until_go(ask)
people[3].say(b"TOPIC #room0"), people[4].say(b"NAMES #room1")
print(people[3].hear(b" 332 "), sorted(people[4].hear(b" 353 ").split(b":")[-1].split()))
end(server)
