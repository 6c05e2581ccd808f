# Packages: postfix python3. Needs: /usr/lib/postfix/sbin/master python3. Options: --save-files
# A mail server of many processes, which pass mail on over UNIX sockets and FIFOs; root only.
import os
import pwd
import smtplib
import sys
import subprocess
import time

from local_server import ask_until_go, connect, end, start

port, here = int(os.environ["PORT"]), os.getcwd()
os.chmod(here, 0o755)
for name in ("conf", "queue", "data", "mail"):
    os.mkdir(name)
os.chown("data", pwd.getpwnam("postfix").pw_uid, -1)
os.chown("mail", 65534, 65534)
open("conf/main.cf", "w").write(f"""compatibility_level = 3.6
queue_directory = {here}/queue
data_directory = {here}/data
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = test.invalid
mydestination =
virtual_mailbox_domains = test.invalid
virtual_mailbox_base = {here}/mail
virtual_mailbox_maps = static:box/
virtual_uid_maps = static:65534
virtual_gid_maps = static:65534
alias_maps =
local_recipient_maps =
smtpd_relay_restrictions = permit_mynetworks, reject
multi_instance_enable = no
maillog_file = {here}/log
maillog_file_prefixes = {here}
smtpd_timeout = 3000s
""")
open("conf/master.cf", "w").write(f"""127.0.0.1:{port} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
error unix - - n - - error
virtual unix - n n - - virtual
proxymap unix - - n - - proxymap
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
""")
subprocess.run(["postfix", "-c", f"{here}/conf", "check"], stdout=sys.stderr, stderr=sys.stderr)
server = start("/usr/lib/postfix/sbin/master", "-c", f"{here}/conf", "-d")
connect(port, server).close()
s = smtplib.SMTP("127.0.0.1", port, timeout=300)
s.ehlo("client")


def boxes():
    return sorted(os.listdir("mail/box/new")) if os.path.isdir("mail/box/new") else []


def send(n):
    s.sendmail("a@test.invalid", [f"b{n}@test.invalid"], f"Subject: number {n}\r\n\r\n" + "text\r\n" * 200)


def arrived(count):
    while len(boxes()) < count:
        assert server.poll() is None
        time.sleep(0.05)


for n in range(5):
    send(n)
arrived(5)
ask_until_go(lambda: s.noop())
for n in range(5, 15):
    send(n)
arrived(15)
print(sorted([line for line in open(f"mail/box/new/{name}") if line.startswith("Subject")][0] for name in boxes()))
print(s.quit())
end(server)
