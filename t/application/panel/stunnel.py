# Packages: stunnel4 openssl python3. Needs: stunnel4 openssl python3
# Encrypted connections that stay open, through a server of threads.
import os
import socket
import ssl
import subprocess
import threading

from local_server import ask_until_go, connect, end, start

here = os.getcwd()
port, behind = int(os.environ["PORT"]), int(os.environ["PORT2"])
subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test", "-days", "30",
                "-keyout", "key", "-out", "certificate"], check=True, stderr=subprocess.DEVNULL)
open("conf", "w").write(f"""
foreground = yes
pid =
[s]
accept = 127.0.0.1:{port}
connect = 127.0.0.1:{behind}
cert = {here}/certificate
key = {here}/key
""")


def echo(c):
    while data := c.recv(65536):
        c.sendall(data[::-1])


def serve(s):
    while True:
        threading.Thread(target=echo, args=(s.accept()[0],), daemon=True).start()


threading.Thread(target=serve, args=(socket.create_server(("127.0.0.1", behind)),), daemon=True).start()
server = start("stunnel4", "conf")
context = ssl.create_default_context(cafile="certificate")
context.check_hostname = False
kept = [context.wrap_socket(connect(port, server)) for _ in range(6)]


def ask():
    for k, c in enumerate(kept):
        data, got = os.urandom(20000), b""
        c.sendall(data)
        while len(got) < len(data):
            got += c.recv(65536)
        # The pieces of it are turned around as they come.
        assert sorted(got) == sorted(data)


ask()
ask_until_go(ask)
ask()
print([c.version() for c in kept])
end(server)
