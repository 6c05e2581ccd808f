# Packages: iperf3 python3. Needs: iperf3 python3
# Streams of TCP in both directions, at a rate, between a server and a client.
import json
import os
import subprocess

from local_server import end, start

port = os.environ["PORT"]
server = start("iperf3", "-s", "-p", port, "--forceflush")
while not open("server.log").read().count("listening"):
    assert server.poll() is None
print("ready", flush=True)
client = subprocess.run(["iperf3", "-c", "127.0.0.1", "-p", port, "-n", "24M", "-b", "8M", "-P", "3", "--bidir", "-J"],
                        stdout=subprocess.PIPE)
said = json.loads(client.stdout)
print(client.returncode, said.get("error"), said["end"]["sum_received"]["bytes"] > 20 << 20)
end(server)
