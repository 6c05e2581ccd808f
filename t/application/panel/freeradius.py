# Packages: freeradius freeradius-utils python3. Needs: /usr/sbin/freeradius radclient python3
# A RADIUS server with its threads, asked by UDP.
import os
import subprocess

from local_server import ask_until_go, end, start

port, here = os.environ["PORT"], os.getcwd()
os.makedirs("raddb")
open("raddb/users", "w").write('alice Cleartext-Password := "secret"\n\tReply-Message := "hello"\n')
open("raddb/radiusd.conf", "w").write(f"""
prefix = /usr
name = radiusd
logdir = {here}
db_dir = {here}
run_dir = {here}
libdir = /usr/lib/freeradius
max_request_time = 600
client local {{
ipaddr = 127.0.0.1
secret = testing
}}
thread pool {{
start_servers = 4
max_servers = 8
min_spare_servers = 2
max_spare_servers = 6
}}
modules {{
pap {{
}}
files {{
usersfile = {here}/raddb/users
}}
}}
server default {{
listen {{
type = auth
ipaddr = 127.0.0.1
port = {port}
}}
authorize {{
files
pap
}}
authenticate {{
pap
}}
}}
""")
server = start("/usr/sbin/freeradius", "-f", "-l", "stdout", "-d", "raddb", "-D", "/usr/share/freeradius")


def answer(password):
    return subprocess.run(["radclient", "-t", "1", "-r", "100", f"127.0.0.1:{port}", "auth", "testing"],
                          input=f'User-Name = "alice", User-Password = "{password}"\n',
                          text=True, capture_output=True).stdout


while "Access-Accept" not in answer("secret"):
    assert server.poll() is None


def ask():
    assert "Access-Accept" in answer("secret")
    assert "Access-Reject" in answer("wrong")


ask()
ask_until_go(ask)
end(server)
