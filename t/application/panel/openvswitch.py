# Packages: openvswitch-switch openvswitch-common python3. Needs: ovs-vswitchd /usr/sbin/ovsdb-server ovs-vsctl python3
# A switch with its database: flows, packets of simulated devices, and a client that is told of changes.
import json
import os
import subprocess
import time

from local_server import ask_until_go, end, start

here = os.getcwd()
os.environ.update(OVS_RUNDIR=here, OVS_LOGDIR=here, OVS_DBDIR=here, OVS_SYSCONFDIR=here)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout


def change(*words):
    return run("ovs-vsctl", f"--db=unix:{here}/db.sock", *words)


run("ovsdb-tool", "create", "conf.db", "/usr/share/openvswitch/vswitch.ovsschema")
base = start("/usr/sbin/ovsdb-server", "conf.db", f"--remote=punix:{here}/db.sock", f"--unixctl={here}/db.ctl", "-vconsole:off")
while not os.path.exists("db.sock"):
    assert base.poll() is None
    time.sleep(0.02)
change("--no-wait", "init")
switch = start("ovs-vswitchd", f"unix:{here}/db.sock", "--enable-dummy=override", "--disable-system", f"--unixctl={here}/switch.ctl",
               f"--log-file={here}/switch.log", "-vconsole:off")
told = subprocess.Popen(["ovsdb-client", "monitor", f"unix:{here}/db.sock", "Open_vSwitch", "Bridge", "external_ids", "--format=json"],
                        stdout=open("told", "w"), stderr=subprocess.DEVNULL)
change("add-br", "br", "--", "set", "bridge", "br", "datapath-type=dummy", "fail-mode=secure",
       *[word for n in range(1, 4) for word in ("--", "add-port", "br", f"p{n}", "--", "set", "interface", f"p{n}", "type=dummy",
                                                f"ofport_request={n}", f"options:tx_pcap={here}/p{n}.pcap")])
bridge = f"unix:{here}/br.mgmt"
run("ovs-ofctl", "add-flow", bridge, "in_port=1,ip,actions=dec_ttl,output:2")
run("ovs-ofctl", "add-flow", bridge, "in_port=2,actions=learn(table=1,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[]),output:3")
turn = 0


def received(n):
    """By the program on the far side of port n."""
    line = [line for line in run("ovs-ofctl", "dump-ports", bridge, f"p{n}").splitlines() if "tx pkts" in line][0]
    return int(line.split("pkts=")[1].split(",")[0])


def ask():
    global turn
    turn += 1
    for n in (1, 2):
        run("ovs-appctl", "-t", f"{here}/switch.ctl", "netdev-dummy/receive", f"p{n}",
            f"in_port({n}),eth(src=50:54:00:00:00:0{n},dst=50:54:00:00:00:0{3 - n}),eth_type(0x0800),"
            f"ipv4(src=10.0.0.{n},dst=10.0.{turn // 250 % 250}.{turn % 250},proto=17,tos=0,ttl=64,frag=no),udp(src=1,dst={turn % 60000 + 1})")
    while received(2) != turn or received(3) != turn:
        assert switch.poll() is None
    if turn % 10 == 0:
        change("set", "bridge", "br", f"external_ids:turn={turn}")


ask()
ask_until_go(ask)
for _ in range(20):
    ask()
print(len(run("ovs-ofctl", "dump-flows", bridge, "table=1").splitlines()), turn == received(2) == received(3))
change("set", "bridge", "br", "external_ids:turn=last")
while '"last"' not in open("told").read():
    assert told.poll() is None
    time.sleep(0.02)
for line in open("told"):
    json.loads(line)
run("ovs-appctl", "-t", f"{here}/switch.ctl", "exit")
print(switch.wait())
told.terminate()
told.wait()
end(base)
