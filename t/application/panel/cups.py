# Packages: cups cups-client python3. Needs: /usr/sbin/cupsd lp lpstat lpadmin python3. Options: --save-files
# Jobs that wait in queues, and are printed.
import grp
import os
import pwd
import subprocess
import time

from local_server import ask_until_go, connect, end, start

port, here = int(os.environ["PORT"]), os.getcwd()
user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name
for name in ("root", "cache", "spool", "state", "run"):
    os.mkdir(name)
os.makedirs("run/certs")
open("root/cupsd.conf", "w").write(f"""Listen 127.0.0.1:{port}
WebInterface No
Browsing Off
DefaultAuthType None
IdleExitTimeout 0
LogLevel warn
MaxLogSize 0
<Location />
Order allow,deny
Allow all
</Location>
<Policy default>
JobPrivateAccess all
<Limit All>
Order deny,allow
Allow all
</Limit>
</Policy>
""")
open("root/cups-files.conf", "w").write(f"""ServerRoot {here}/root
CacheDir {here}/cache
RequestRoot {here}/spool
StateDir {here}/state
TempDir {here}/spool
AccessLog {here}/access
ErrorLog {here}/error
PageLog {here}/page
FileDevice Yes
SystemGroup {group}
{"" if not os.getuid() else f"User {user}"}
{"" if not os.getuid() else f"Group {group}"}
LockFile {here}/lock
""".replace(f"LockFile {here}/lock\n", ""))
os.environ["CUPS_SERVER"] = f"127.0.0.1:{port}"
os.environ["HOME"] = here
server = start("/usr/sbin/cupsd", "-f", "-c", f"{here}/root/cupsd.conf", "-s", f"{here}/root/cups-files.conf")
connect(port, server).close()


def run(*command, data=None):
    done = subprocess.run(command, input=data, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert not done.returncode, done
    return done.stdout


run("lpadmin", "-p", "printer", "-E", "-v", "file:/dev/null", "-m", "raw")
run("lpadmin", "-p", "waiting", "-E", "-v", "file:/dev/null", "-m", "raw")
run("lp", "-d", "printer", "-H", "hold", data=b"held until later\n")
run("lp", "-d", "printer", data=b"first\n")
while run("lpstat", "-W", "completed", "-o", "printer").count(b"\n") < 1:
    time.sleep(0.05)
ask_until_go(lambda: run("lpstat", "-o", "-p", "printer"))
run("lp", "-i", "printer-1", "-H", "resume")
while run("lpstat", "-W", "completed", "-o", "printer").count(b"\n") < 2:
    time.sleep(0.05)
print(open("spool/d00001-001").read(), [line.split()[0] for line in open("page")])
print([line.split()[0] for line in run("lpstat", "-W", "all", "-o").splitlines()])
end(server)
