# Packages: openssh-server openssh-client python3. Needs: /usr/sbin/sshd ssh ssh-keygen python3
# A server as the user's own, with a connection over which several sessions go, one with a terminal.
import os
import pwd
import subprocess

from local_server import ask_until_go, connect, end, start

port, here = int(os.environ["PORT"]), os.getcwd()
os.makedirs("/run/sshd", exist_ok=True) if not os.getuid() else None
for name in ("host", "mine"):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name], check=True)
os.chmod("mine.pub", 0o644)
open("conf", "w").write(f"""
Port {port}
ListenAddress 127.0.0.1
HostKey {here}/host
AuthorizedKeysFile {here}/mine.pub
StrictModes no
UsePAM no
PidFile none
PermitRootLogin yes
LoginGraceTime 0
SetEnv SHLVL=5
""")
# With that SHLVL bash takes its start for one by hand, and reads no .bashrc.
server = start("/usr/sbin/sshd", "-D", "-e", "-f", f"{here}/conf")
connect(port, server).close()
to = ["ssh", "-F", "none", "-i", "mine", "-p", str(port), "-S", f"{here}/s", "-o", "UserKnownHostsFile=known",
      "-o", "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR", pwd.getpwuid(os.getuid()).pw_name + "@127.0.0.1"]
master = subprocess.Popen(to[:1] + ["-M", "-N"] + to[1:], stdin=subprocess.DEVNULL)
while subprocess.run(to[:1] + ["-O", "check"] + to[1:], stderr=subprocess.DEVNULL).returncode:
    assert master.poll() is None
far = [subprocess.Popen(to + [f"exec {what}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
       for what in ("cat", "sed -u s/^/far:/")]
# As an ordinary user sshd gives no terminal.
terminal = subprocess.Popen(to[:1] + ([] if os.getuid() else ["-tt"]) + to[1:] + [("" if os.getuid() else "stty -echo; ") + "while read x; do echo \"$x $((x * 2))\"; done"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
turn = 0


def say(p, line):
    p.stdin.write(line)
    p.stdin.flush()


def ask():
    global turn
    turn += 1
    line = b"turn %d " % turn + b"x" * 3000 + b"\n"
    for p, before in zip(far, (b"", b"far:")):
        say(p, line)
        assert p.stdout.readline() == before + line
    say(terminal, b"%d\n" % turn)
    while True:
        heard = terminal.stdout.readline()
        assert heard
        if heard.split() == [b"%d" % turn, b"%d" % (turn * 2)]:
            return


ask_until_go(ask)
print(subprocess.run(to + ["echo new; exit 7"], capture_output=True))
for p in far:
    p.stdin.close()
print([p.wait() for p in far])
terminal.stdin.close()
terminal.kill()
subprocess.run(to[:1] + ["-q", "-O", "exit"] + to[1:], stderr=subprocess.DEVNULL)
master.wait()
end(server)
