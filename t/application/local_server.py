"""What the panel's servers have in common, whatever they speak: started here, asked until they are to end."""
import os
import socket
import subprocess
import time


def start(*command):
    """In a session of its own, as some signal their whole group when they end."""
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=open("server.log", "a"),
                            stderr=subprocess.STDOUT, start_new_session=True)


def connect(port, server):
    """A connection, as soon as the server's process listens."""
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=60)
        except ConnectionRefusedError:
            assert server.poll() is None
            time.sleep(0.02)


def ask_until_go(ask):
    print("ready", flush=True)
    while not os.path.exists("go"):
        ask()
        time.sleep(0.002)


def end(server):
    server.terminate()
    print(server.wait())
