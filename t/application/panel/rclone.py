# Packages: rclone python3. Needs: rclone python3
# Go: a server of files by WebDAV, and a client that copies through it, slowly.
import os
import subprocess

from local_server import connect, end, start

port = int(os.environ["PORT"])
os.environ.update(HOME=os.getcwd(), RCLONE_CONFIG="/dev/null")
os.mkdir("from")
for k in range(60):
    open(f"from/{k}", "wb").write(b"%d " % k * 20000)
server = start("rclone", "serve", "webdav", "from", "--addr", f"127.0.0.1:{port}")
connect(port, server).close()
print("ready", flush=True)
print(subprocess.run(["rclone", "copy", f":webdav,url='http://127.0.0.1:{port}':", "to", "--bwlimit", "1M", "--transfers", "3",
                      "--stats", "0"]).returncode)
# What a restart has put aside of a file that it made shorter is beside it.
print(subprocess.run(["diff", "-r", "-x", "*.trecr-tail*", "from", "to"]).returncode)
end(server)
