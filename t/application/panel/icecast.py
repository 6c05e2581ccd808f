# Packages: icecast2 python3. Needs: icecast2 python3
# A radio: one who plays, and several who listen to what comes, without end.
import os
import threading

from local_server import ask_until_go, connect, end, start

port = int(os.environ["PORT"])
owner = "" if os.getuid() else "<changeowner><user>nobody</user><group>nogroup</group></changeowner>"
open("conf", "w").write(f"""<icecast><hostname>localhost</hostname>
<limits><clients>50</clients><sources>2</sources><source-timeout>3600</source-timeout><client-timeout>3600</client-timeout>
<burst-size>0</burst-size></limits>
<authentication><source-password>p</source-password><admin-user>a</admin-user><admin-password>p</admin-password></authentication>
<listen-socket><port>{port}</port><bind-address>127.0.0.1</bind-address></listen-socket>
<paths><basedir>{os.getcwd()}</basedir><logdir>{os.getcwd()}</logdir><webroot>/usr/share/icecast2/web</webroot>
<adminroot>/usr/share/icecast2/admin</adminroot></paths>
<logging><accesslog>-</accesslog><errorlog>-</errorlog><loglevel>2</loglevel></logging>
<security><chroot>0</chroot>{owner}</security></icecast>""")
os.chmod("conf", 0o644), os.chmod(".", 0o777)
server = start("icecast2", "-c", os.path.abspath("conf"))
source = connect(port, server)
source.sendall(b"PUT /radio HTTP/1.1\r\nHost: x\r\nAuthorization: Basic c291cmNlOnA=\r\nContent-Type: audio/mpeg\r\n"
               b"Expect: 100-continue\r\n\r\n")
assert b" 100 " in source.recv(1000)
play, listeners = 0, []
for k in range(5):
    listeners.append(connect(port, server).makefile("rwb"))
    listeners[k].write(b"GET /radio HTTP/1.0\r\n\r\n")
    listeners[k].flush()


def send():
    global play
    play += 1
    source.sendall(b"%09d\n" % play * 200)


def heads():
    for one in listeners:
        assert b" 200 " in one.readline()
        while one.readline() != b"\r\n":
            pass


reading = threading.Thread(target=heads)
reading.start()
while reading.is_alive():
    send()
    reading.join(0.02)
at = [int(one.read(10)) for one in listeners]
part = [0] * 5


def ask():
    """Nothing may be missing, or come twice, after the first that each has heard."""
    send()
    for k, one in enumerate(listeners):
        while at[k] < play - 20:
            line = one.readline()
            now = int(line) if len(line) == 10 else at[k]
            assert now in (at[k], at[k] + 1), (k, at[k], line)
            at[k] = now


ask_until_go(ask)
for _ in range(100):
    ask()
print(len(at), max(at) - min(at) < 100)
end(server)
