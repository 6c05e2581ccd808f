# Packages: tor python3. Needs: tor python3
# An onion router without a network: its control port, under a seccomp filter of its own where that can be saved.
import os

from local_server import ask_until_go, connect, end, start

port = int(os.environ["PORT"])
os.mkdir("data", 0o700)
open("torrc", "w").write(f"DataDirectory {os.getcwd()}/data\nControlPort 127.0.0.1:{port}\nSocksPort 0\nDisableNetwork 1\n"
                         f"Sandbox {int(os.geteuid() == 0)}\nLog notice file {os.getcwd()}/data/log\n")
server = start("tor", "-f", "torrc", "--defaults-torrc", "/dev/null")
control = connect(port, server)
control.settimeout(300)
lines = control.makefile("r", newline="\r\n")


def run(command):
    control.sendall(command.encode() + b"\r\n")
    answer = []
    while True:
        line = lines.readline()
        assert line, (command, answer)
        answer.append(line.strip())
        if line[:4] == "250 " or line[0] != "2":
            return answer


assert run("AUTHENTICATE") == ["250 OK"]
turn = 0


def ask():
    global turn
    turn += 1
    assert run(f"SETCONF Nickname=turn{turn}") == ["250 OK"]
    assert run("GETCONF Nickname") == [f"250 Nickname=turn{turn}"]
    assert run("GETINFO config-can-saveconf dormant")[-1] == "250 OK"
    made = run("ADD_ONION NEW:ED25519-V3 Flags=Detach Port=80,127.0.0.1:9")
    name = made[0].split("=")[1]
    assert len(name) == 56 and made[-1] == "250 OK", made
    assert name in " ".join(run("GETINFO onions/detached")) and run(f"DEL_ONION {name}") == ["250 OK"]


ask_until_go(ask)
print(run("GETCONF DisableNetwork"), run("GETINFO process/pid")[0] == f"250-process/pid={server.pid}")
end(server)
