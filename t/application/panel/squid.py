# Packages: squid python3. Needs: /usr/sbin/squid python3
# A proxy of several processes that keeps what it has fetched, with connections kept open through it.
import http.client
import os
import pwd

from local_http import serve_behind
from local_server import ask_until_go, connect, end, start

here = os.getcwd()
port, behind = int(os.environ["PORT"]), int(os.environ["PORT2"])
fetched = []


def contents(path):
    fetched.append(path)
    return (path * 3000).encode()


serve_behind(behind, contents, {"Cache-Control": "max-age=86400"})
os.chmod(here, 0o777)
open("conf", "w").write(f"""
http_port 127.0.0.1:{port}
http_access allow all
cache_dir ufs {here}/cache 50 4 4
cache_mem 8 MB
access_log none
cache_log {here}/cache.log
cache_store_log none
pid_filename {here}/pid
coredump_dir {here}
visible_hostname panel
shutdown_lifetime 0 seconds
pinger_enable off
netdb_filename none
cache_effective_user {pwd.getpwuid(os.getuid()).pw_name if os.getuid() else "proxy"}
""")
os.mkdir("cache")
os.chmod("cache", 0o777)
start("/usr/sbin/squid", "-N", "-z", "-f", "conf").wait()
server = start("/usr/sbin/squid", "--foreground", "-f", "conf")
connect(port, server).close()
kept = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for _ in range(5)]


def get(c, path):
    c.request("GET", f"http://127.0.0.1:{behind}{path}")
    return c.getresponse().read()


for k in range(200):
    assert get(kept[k % 5], f"/page{k}") == f"/page{k}".encode() * 3000
ask_until_go(lambda: [get(c, f"/page{k}") for k, c in enumerate(kept)])
del fetched[:]
print([get(kept[k % 5], f"/page{k}") == f"/page{k}".encode() * 3000 for k in range(200)], fetched)
end(server)
