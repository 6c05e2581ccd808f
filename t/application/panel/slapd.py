# Packages: slapd ldap-utils python3. Needs: /usr/sbin/slapd ldapadd python3
# A directory in a memory-mapped database (LMDB), which is written in place: while crashes are expected, it is asked.
import os
import subprocess

from local_server import ask_until_go, connect, end, start

here = os.getcwd()
port = int(os.environ["PORT"])
open("conf", "w").write(f"""
include /etc/ldap/schema/core.schema
pidfile {here}/pid
modulepath /usr/lib/ldap
moduleload back_mdb
database mdb
maxsize 16777216
suffix "dc=test"
rootdn "cn=admin,dc=test"
rootpw secret
directory {here}/data
""")
os.mkdir("data")
server = start("/usr/sbin/slapd", "-d", "0", "-f", "conf", "-h", f"ldap://127.0.0.1:{port}")
connect(port, server).close()
url = ["-x", "-H", f"ldap://127.0.0.1:{port}"]
admin = url + ["-D", "cn=admin,dc=test", "-w", "secret"]


def add(text):
    subprocess.run(["ldapadd"] + admin, input=text, text=True, check=True, stdout=subprocess.DEVNULL)


def search(what):
    return subprocess.run(["ldapsearch", "-LLL"] + url + ["-b", "dc=test", what], check=True, capture_output=True, text=True).stdout


def person(k):
    return f"dn: cn=p{k},dc=test\nobjectClass: person\ncn: p{k}\nsn: name{k % 7}\ndescription: {'x' * (k % 50 + 1)}\n\n"


add("dn: dc=test\nobjectClass: dcObject\nobjectClass: organization\ndc: test\no: test\n\n")
add("".join(person(k) for k in range(300)))
ask_until_go(lambda: search("(sn=name2)"))
add("".join(person(k) for k in range(300, 400)))
subprocess.run(["ldapdelete"] + admin + ["cn=p3,dc=test"], check=True)
print(search("(sn=name3)"))
print(len(search("(objectClass=person)")))
end(server)
