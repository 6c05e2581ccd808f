# Packages: vsftpd python3. Needs: vsftpd python3
# An FTP server that gives each session processes without privileges in a root directory of their own, where root starts it: with a
# transfer under way. (Its seccomp filters end a session at the first transfer here, without trecr, too.)
import ftplib
import io
import os
import pwd

from local_server import ask_until_go, connect, end, start

port, here, root = int(os.environ["PORT"]), os.getcwd(), os.geteuid() == 0
os.mkdir("home"), os.mkdir("empty")
open("home/large", "wb").write(bytes(range(256)) * 40000)
os.chmod(here, 0o755)
open("conf", "w").write(f"""listen=YES
listen_port={port}
background=NO
anonymous_enable=YES
anon_root={here}/home
ftp_username={'daemon' if root else pwd.getpwuid(os.geteuid()).pw_name}
nopriv_user=nobody
secure_chroot_dir={here}/empty
seccomp_sandbox=NO
isolate=NO
isolate_network=NO
run_as_launching_user={'NO' if root else 'YES'}
allow_writeable_chroot=YES
no_anon_password=YES
anon_max_rate=0
vsftpd_log_file={here}/log
xferlog_enable=YES
""")
server = start("vsftpd", f"{here}/conf")
connect(port, server).close()


def log_in():
    ftp = ftplib.FTP()
    ftp.connect("127.0.0.1", port, timeout=300)
    ftp.login(), ftp.voidcmd("TYPE I")
    return ftp


session, other = log_in(), log_in()
half = other.transfercmd("RETR large")
got = half.recv(1000, 0x100)  # MSG_WAITALL


def ask():
    assert session.nlst() == ["large"] and session.voidcmd("TYPE I") and session.size("large") == 10240000
    part = io.BytesIO()
    with session.transfercmd("RETR large", rest=10240000 - 5000) as data:
        while more := data.recv(65536):
            part.write(more)
    session.voidresp()
    assert part.getvalue() == (bytes(range(256)) * 20)[-5000:]


ask_until_go(ask)
while more := half.recv(65536):
    got += more
print(other.voidresp(), got == bytes(range(256)) * 40000)
print(log_in().nlst())
end(server)
