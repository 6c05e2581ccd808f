# Packages: dovecot-imapd python3. Needs: /usr/sbin/dovecot python3
# A mail server of many small processes, which hand connections to each other over UNIX sockets.
import imaplib
import grp
import os
import pwd

from local_server import ask_until_go, connect, end, start

port, here = int(os.environ["PORT"]), os.getcwd()
me = pwd.getpwuid(os.getuid()).pw_name
internal = "dovecot" if not os.getuid() else me
login = "dovenull" if not os.getuid() else me
mail = ("nobody", 65534, 65534) if not os.getuid() else (me, os.getuid(), os.getgid())
for name in ("mail", "run", "state"):
    os.mkdir(name)
os.chmod(".", 0o755), os.chown("mail", *mail[1:])
group = "" if not os.getuid() else f"""default_internal_group = {grp.getgrgid(os.getgid()).gr_name}
service anvil {{
  chroot =
}}
service imap-login {{
  chroot =
}}
service stats {{
  chroot =
}}
"""
open("conf", "w").write(f"""
base_dir = {here}/run
state_dir = {here}/state
instance_name = panel
log_path = {here}/log
protocols = imap
ssl = no
disable_plaintext_auth = no
listen = 127.0.0.1
default_internal_user = {internal}
default_login_user = {login}
{group}
first_valid_uid = 1
mail_location = maildir:{here}/mail/%u
service imap-login {{
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
passdb {{
  driver = static
  args = password=p
}}
userdb {{
  driver = static
  args = uid={mail[1]} gid={mail[2]} home={here}/mail
}}
""")
server = start("/usr/sbin/dovecot", "-F", "-c", f"{here}/conf")
connect(port, server).close()
boxes = []
for k in range(3):
    box = imaplib.IMAP4("127.0.0.1", port, timeout=120)
    box.login(f"u{k}", "p")
    box.select()
    boxes.append(box)


def write(box, turn):
    assert box.append("INBOX", "", None, b"Subject: turn %d\r\n\r\n" % turn + b"text\r\n" * 50)[0] == "OK"


def read(box):
    """The newest."""
    n = box.select()[1][0].decode()
    return b"".join(box.fetch(n, "(BODY[HEADER.FIELDS (SUBJECT)])")[1][0]).split()[-1]


# A message is a new file, which a restart does not take away: in between there are none.
for turn in range(30):
    write(boxes[turn % 3], turn)
ask_until_go(lambda: [read(b) for b in boxes])
print([read(b) for b in boxes])
for turn in range(30, 60):
    write(boxes[turn % 3], turn)
print([(read(b), b.search(None, "ALL")[1][0].split()[-1], b.logout()[0]) for b in boxes])
end(server)
