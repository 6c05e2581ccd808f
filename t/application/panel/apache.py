# Packages: apache2 python3. Needs: /usr/sbin/apache2 python3
# The event module: processes with many threads, kept connections, scripts by CGI, a rewritten log.
import http.client
import os
import pwd
import signal

from local_http import get
from local_server import ask_until_go, connect, end, start

here, port = os.getcwd(), int(os.environ["PORT"])
modules = "/usr/lib/apache2/modules/mod_"
os.mkdir("www"), os.chmod("www", 0o755)
for k in range(50):
    open(f"www/{k}", "w").write(f"page {k}\n" * 1000 * (k % 7 + 1))
open("www/count.sh", "w").write("#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n%s' \"$QUERY_STRING\"\n")
os.chmod("www/count.sh", 0o755)
user = "" if os.getuid() else "User www-data\nGroup www-data\n"
names = "mpm_event authz_core authz_host dir mime cgid".split()
open("conf", "w").write(user + "\n".join(f"LoadModule {n}_module {modules}{n}.so" for n in names) + f"""
ServerName test
ServerRoot {here}
PidFile {here}/pid
ErrorLog {here}/error.log
ScriptSock {here}/cgi
DefaultRuntimeDir {here}
Listen 127.0.0.1:{port}
TypesConfig /dev/null
StartServers 2
ThreadsPerChild 16
MaxKeepAliveRequests 0
KeepAliveTimeout 3600
Timeout 3600
DocumentRoot {here}/www
<Directory {here}/www>
Require all granted
Options ExecCGI
AddHandler cgi-script .sh
</Directory>
""")
server = start("/usr/sbin/apache2", "-f", f"{here}/conf", "-DFOREGROUND")
connect(port, server).close()
kept = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(8)]


def ask():
    for k, c in enumerate(kept):
        assert get(c, f"/{k * 5}") == b"page %d\n" % (k * 5) * 1000 * (k * 5 % 7 + 1)
    assert get(kept[0], "/count.sh?turn") == b"turn"


ask_until_go(ask)
server.send_signal(signal.SIGUSR1)
print(sum(len(get(http.client.HTTPConnection("127.0.0.1", port, timeout=60), f"/{k}")) for k in range(50)))
end(server)
