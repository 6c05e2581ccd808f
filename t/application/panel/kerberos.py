# Packages: krb5-kdc krb5-admin-server krb5-user python3. Needs: /usr/sbin/krb5kdc /usr/sbin/kdb5_util /usr/sbin/kadmin.local kinit kvno python3
# A key distribution centre with its database; tickets are asked for by UDP and by TCP.
import os
import subprocess

from local_server import ask_until_go, connect, end, start

port, here = os.environ["PORT"], os.getcwd()
open("krb5.conf", "w").write(f"""
[libdefaults]
default_realm = PANEL
dns_lookup_kdc = false
dns_canonicalize_hostname = false
rdns = false
[realms]
PANEL = {{
kdc = 127.0.0.1:{port}
database_module = local
}}
[dbmodules]
local = {{
db_library = db2
database_name = {here}/principal
}}
""")
open("kdc.conf", "w").write(f"""
[kdcdefaults]
kdc_listen = 127.0.0.1:{port}
kdc_tcp_listen = 127.0.0.1:{port}
[realms]
PANEL = {{
key_stash_file = {here}/stash
}}
""")
os.environ.update(KRB5_CONFIG=f"{here}/krb5.conf", KRB5_KDC_PROFILE=f"{here}/kdc.conf", KRB5CCNAME=f"FILE:{here}/cache")


def run(*command, text=""):
    return subprocess.run(command, input=text, text=True, capture_output=True, check=True).stdout


run("/usr/sbin/kdb5_util", "create", "-s", "-P", "master")
for name, options in (("user", "-pw secret"), ("service", "-randkey")):
    run("/usr/sbin/kadmin.local", "-q", f"addprinc {options} {name}")
server = start("/usr/sbin/krb5kdc", "-n", "-w", "2")
connect(int(port), server).close()


def ask():
    run("kinit", "user", text="secret\n")
    assert "kvno = 1" in run("kvno", "service")
    assert subprocess.run(["kinit", "user"], input="wrong\n", text=True, capture_output=True).returncode == 1


ask()
ask_until_go(ask)
end(server)
