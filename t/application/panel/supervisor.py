# Packages: supervisor monit python3. Needs: /usr/bin/supervisord monit python3
# Two that look after others: supervisord with programs that it starts again and talks to by pipes, and monit, which watches them.
import base64
import os
import signal
import time
import urllib.request
import xmlrpc.client

from local_server import ask_until_go, connect, end, start

here = os.getcwd()
port, port2 = int(os.environ["PORT"]), int(os.environ["PORT2"])
open("conf", "w").write(f"""
[supervisord]
nodaemon=true
logfile={here}/supervisord.log
logfile_maxbytes=0
pidfile={here}/pid
childlogdir={here}
{"user=root" if not os.getuid() else ""}
[inet_http_server]
port=127.0.0.1:{port}
[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
[program:worker]
command=sleep 100000
process_name=%(process_num)d
numprocs=4
autorestart=true
startsecs=0
startretries=1000000
[program:echo]
command=cat
stdout_logfile={here}/echo.log
stdout_logfile_maxbytes=0
startsecs=0
""")
watcher_conf = os.open("monitrc", os.O_WRONLY | os.O_CREAT, 0o600)
os.write(watcher_conf, f"""
set daemon 1
set idfile {here}/monit.id
set statefile {here}/monit.state
set pidfile {here}/monit.pid
set log {here}/monit.log
set httpd port {port2} and use address 127.0.0.1 allow 127.0.0.1 allow admin:monit
check process supervisord with pidfile {here}/pid
check host web with address 127.0.0.1
    if failed port {port} protocol http status < 500 then alert
check file echoed with path {here}/echo.log
""".encode())
os.close(watcher_conf)
supervisord = start("/usr/bin/supervisord", "-n", "-c", f"{here}/conf")
connect(port, supervisord).close()
api = xmlrpc.client.ServerProxy(f"http://127.0.0.1:{port}/RPC2").supervisor
while [p["statename"] for p in api.getAllProcessInfo()] != ["RUNNING"] * 5:
    time.sleep(0.05)
monit = start("monit", "-I", "-c", f"{here}/monitrc")
connect(port2, monit).close()
turn = 0


def watched():
    request = urllib.request.Request(f"http://127.0.0.1:{port2}/_status?format=xml&level=full")
    request.add_header("Authorization", "Basic " + base64.b64encode(b"admin:monit").decode())
    return urllib.request.urlopen(request).read().decode()


def state(name):
    return api.getProcessInfo(name)


def ask():
    global turn
    turn += 1
    api.sendProcessStdin("echo", f"turn {turn}\n")
    while f"turn {turn}\n" not in api.readProcessStdoutLog("echo", -200, 0):
        time.sleep(0.01)
    if turn % 5:
        return
    name = f"worker:{turn % 4}"
    before = state(name)["pid"]
    os.kill(before, signal.SIGKILL)
    while state(name)["pid"] in (0, before):
        time.sleep(0.02)
    assert "<name>supervisord</name>" in watched()


ask()
ask_until_go(ask)
print(sorted((p["group"], p["name"], p["statename"]) for p in api.getAllProcessInfo()))
pid = f"<pid>{supervisord.pid}</pid>"
while pid not in watched():
    time.sleep(0.1)
print(api.stopProcess("echo"), api.startProcess("echo"))
end(monit)
end(supervisord)
