# Packages: qemu-utils python3. Needs: qemu-nbd qemu-io qemu-img python3. Options: --save-files
# A disk image that is served over TCP: by io_uring, and by native asynchronous I/O with O_DIRECT.
import os
import subprocess

from local_server import ask_until_go, connect, end, start

servers, clients = [], []
for aio, cache, port in ("io_uring", "none", os.environ["PORT"]), ("native", "none", os.environ["PORT2"]):
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", aio, "32M"], check=True)
    servers.append(start("qemu-nbd", "-f", "qcow2", "-t", "-b", "127.0.0.1", "-p", port, f"--aio={aio}", f"--cache={cache}",
                         "-e", "4", aio))
    connect(int(port), servers[-1]).close()
    clients.append(subprocess.Popen(["qemu-io", "-f", "raw", f"nbd://127.0.0.1:{port}"], text=True, stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE))


def run(client, command):
    client.stdin.write(command + "\n")
    client.stdin.flush()
    answer = ""
    while "ops" not in answer and "failed" not in answer and "rror" not in answer:
        line = client.stdout.readline()
        assert line, answer
        answer += line
    assert "failed" not in answer and "rror" not in answer, (command, answer)


turn = 0


def ask():
    global turn
    turn += 1
    for client in clients:
        run(client, f"write -P {1 + turn % 250} {turn % 400 * 65536} 65536")
        if turn > 10:
            run(client, f"read -P {1 + (turn - 10) % 250} {(turn - 10) % 400 * 65536} 65536")


ask_until_go(ask)
for client, server in zip(clients, servers):
    for k in range(max(1, turn - 399), turn + 1):
        run(client, f"read -P {1 + k % 250} {k % 400 * 65536} 65536")
    client.stdin.close()
    client.wait()
    server.terminate()
    server.wait()
for name in "io_uring", "native":
    print(subprocess.run(["qemu-img", "check", name], capture_output=True, text=True).stdout.split("\n")[0])
