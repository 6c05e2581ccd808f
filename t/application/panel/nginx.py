# Packages: nginx-light python3. Needs: nginx python3
import os
import subprocess
import zlib

from local_http import connect, get

here = os.getcwd()
port = int(os.environ["PORT"])
open("data", "wb").write(bytes(range(256)) * 4000)
open("conf", "w").write(f"""
daemon off; pid {here}/pid; error_log {here}/error.log; worker_processes 2;
{"user root;" if os.getuid() == 0 else ""}
events {{ worker_connections 64; }}
http {{
    access_log off; client_body_temp_path {here}/b; proxy_temp_path {here}/p;
    fastcgi_temp_path {here}/f; uwsgi_temp_path {here}/u; scgi_temp_path {here}/c;
    server {{ listen 127.0.0.1:{port}; root {here}; }}
}}
""")
server = subprocess.Popen(["nginx", "-p", here, "-c", f"{here}/conf", "-e", f"{here}/error.log"])


def checksum(c):
    return zlib.crc32(get(c, "/data"))


kept = [connect(port, server) for _ in range(5)]
sums = {checksum(c) for c in kept}
print("ready", flush=True)
while not os.path.exists("go"):
    for c in kept:
        sums.add(checksum(c))
print(sums, [checksum(c) for c in kept])
server.terminate()
print(server.wait())
