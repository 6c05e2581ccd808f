# Packages: transmission-daemon python3. Needs: transmission-daemon python3
# It checks a file that it shares, and is asked about it.
import hashlib
import http.client
import json
import base64
import os
import time

from local_server import ask_until_go, connect, end, start

here = os.getcwd()
port, peer = os.environ["PORT"], os.environ["PORT2"]
os.mkdir("files")
data = bytes(range(256)) * 20000
open("files/data", "wb").write(data)
pieces = b"".join(hashlib.sha1(data[k:k + 65536]).digest() for k in range(0, len(data), 65536))
torrent = b"d4:infod6:lengthi%de4:name4:data12:piece lengthi65536e6:pieces%d:%s7:privatei1eee" % (len(data), len(pieces), pieces)
server = start("transmission-daemon", "-f", "-g", f"{here}/state", "-w", f"{here}/files", "-p", port, "-P", peer,
               "-r", "127.0.0.1", "-a", "127.0.0.1", "-M", "-O", "-Y", "--no-utp", "-i", "127.0.0.1")
connect(int(port), server).close()
token = ""


def ask(method, **arguments):
    global token
    while True:
        c = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
        c.request("POST", "/transmission/rpc", json.dumps({"method": method, "arguments": arguments}),
                  {"X-Transmission-Session-Id": token})
        answer = c.getresponse()
        text = answer.read()
        if answer.status != 409:
            return json.loads(text)["arguments"]
        token = answer.getheader("X-Transmission-Session-Id")


def state():
    return ask("torrent-get", fields=["name", "percentDone", "haveValid", "error"])["torrents"]


ask("torrent-add", metainfo=base64.b64encode(torrent).decode())
while not state() or state()[0]["percentDone"] < 1:
    time.sleep(0.1)
ask_until_go(state)
print(state())
ask("torrent-set", ids=[1], uploadLimit=7)
print(ask("torrent-get", fields=["uploadLimit"]))
end(server)
