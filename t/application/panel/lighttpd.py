# Packages: lighttpd python3. Needs: /usr/sbin/lighttpd python3
# Two workers that serve files, and programs (CGI).
import os
import zlib

from local_http import connect, get
from local_server import ask_until_go, end, start

here = os.getcwd()
port = int(os.environ["PORT"])
open("data", "wb").write(bytes(range(256)) * 4000)
open("program.cgi", "w").write("printf 'Content-Type: text/plain\\r\\n\\r\\n'; cksum data\n")
open("conf", "w").write(f"""
server.document-root = "{here}"
server.port = {port}
server.bind = "127.0.0.1"
server.max-worker = 2
server.max-keep-alive-idle = 3600
server.max-keep-alive-requests = 1000000
server.modules = ("mod_cgi")
cgi.assign = (".cgi" => "/bin/sh")
""")
server = start("/usr/sbin/lighttpd", "-D", "-f", "conf")
kept = [connect(port, server) for _ in range(6)]


def ask():
    return [zlib.crc32(get(c, "/data")) for c in kept]


first = ask()
ask_until_go(ask)
print(ask() == first, first[0])
print([get(c, "/program.cgi") for c in kept])
end(server)
