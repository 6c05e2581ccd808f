#!/bin/bash
# Servers and clients as they come, both in the tree, saved in the middle of their talk.
. "$(dirname "$0")/lib.sh"

# Until the test lets them end: said by the file "go".
twice_and_go() {
	freeze_away && step="first restart" && restart_detached && step="second checkpoint" &&
		freeze_away && step="second restart" && restart_here && step="going on" &&
		touch go && await -t 60 -p "$sup" 2>>await.err || return 1
	wait "$sup"
	status=$?
	step="its own checks"
	[ $status = 0 ] && [ "$(tail -n 1 out)" = ok ]
}

program() { # NAME COMMAND...
	scenario "$1: restarted twice in a row" twice_and_go "${@:2}"
}

have python3 || skip_all "no python3"

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

program "socketserver of python and clients in threads" python3 -c '
import os, socket, socketserver, threading

class Adder(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(b"%d\n" % (int(line) + 1))

def client(family, address, result):
    with socket.socket(family) as s:
        s.connect(address)
        f = s.makefile("rwb")
        n = turns = 0
        while turns < 100 or not os.path.exists("go"):
            f.write(b"%d\n" % n)
            f.flush()
            n = int(f.readline())
            turns += 1
        result.append(n == turns)

tcp = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Adder)
local = socketserver.ThreadingUnixStreamServer("local", Adder)
for server in tcp, local:
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
result = []
threads = [threading.Thread(target=client, args=a + (result,)) for a in
    [(socket.AF_INET, tcp.server_address), (socket.AF_UNIX, "local")] * 3]
for t in threads:
    t.start()
print("ready", flush=True)
for t in threads:
    t.join()
print("ok" if result == [True] * 6 else result, flush=True)
'

program "asyncio of python, server and clients in two processes" python3 -c '
import asyncio, os, sys

async def serve(reader, writer):
    while data := await reader.readexactly(4096):
        writer.write(data[::-1])
        await writer.drain()

async def client(port, n):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = bytes((n + i) % 251 for i in range(4096))
    turns = 0
    while turns < 100 or not os.path.exists("go"):
        writer.write(data + data)
        for k in range(2):
            answer = await reader.readexactly(4096)
            assert answer == data[::-1], "client %d: turn %d" % (n, turns)
        turns += 1
    return True

async def clients(port):
    return await asyncio.gather(*(client(port, n) for n in range(8)))

ours, theirs = os.pipe()
server = os.fork()
if not server:
    async def main():
        s = await asyncio.start_server(serve, "127.0.0.1", 0)
        os.write(theirs, b"%d" % s.sockets[0].getsockname()[1])
        await s.serve_forever()
    os.dup2(os.open("server.err", os.O_WRONLY | os.O_CREAT), 2)
    asyncio.run(main())
port = int(os.read(ours, 16))
print("ready", flush=True)
result = asyncio.run(clients(port))
os.kill(server, 9)
os.waitpid(server, 0)
print("ok" if all(result) else result, flush=True)
'

if have redis-server; then
	port=$(free_port)
	cat >"$scratch/client.py" <<-'E'
		import os, socket, sys
		where = sys.argv[1]
		s = socket.socket(socket.AF_UNIX if "/" in where else socket.AF_INET)
		s.connect(where if "/" in where else ("127.0.0.1", int(where)))
		f = s.makefile("rwb")
		key = b"key%d" % os.getpid()
		n = 0
		while n < 100 or not os.path.exists("go"):
		    f.write(b"INCR " + key + b"\r\nECHO x\r\n" * 3)
		    f.flush()
		    n += 1
		    answer = f.readline()
		    assert answer == b":%d\r\n" % n, answer
		    for i in range(6):
		        f.readline()
	E
	program "redis-server and clients" bash -c "
		redis-server --port $port --bind 127.0.0.1 --unixsocket \$PWD/redis --save '' \
			--daemonize no >redis.log 2>&1 </dev/null &
		server=\$!
		while ! redis-cli -p $port ping >/dev/null 2>&1; do sleep 0.05; done
		for where in $port \$PWD/redis $port; do
			python3 $scratch/client.py \$where & clients=\"\$clients \$!\"
		done
		echo ready
		for c in \$clients; do wait \$c || exit 1; done
		kill \$server
		wait \$server
		echo ok"
else
	skip "redis-server and clients: restarted twice in a row" "no redis-server"
fi

if have nginx && have wrk; then
	port=$(free_port)
	cat >"$scratch/nginx.conf" <<-E
		daemon off;
		pid nginx.pid;
		error_log error.log;
		worker_processes 2;
		events { worker_connections 128; }
		http {
			access_log off;
			client_body_temp_path tmp;
			proxy_temp_path tmp;
			fastcgi_temp_path tmp;
			uwsgi_temp_path tmp;
			scgi_temp_path tmp;
			server {
				listen 127.0.0.1:$port;
				location / { return 200 "hello"; }
			}
		}
	E
	program "nginx with wrk" bash -c "
		mkdir tmp
		nginx -p \$PWD -c $scratch/nginx.conf -e error.log >/dev/null 2>&1 </dev/null &
		server=\$!
		while ! (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null; do sleep 0.05; done
		wrk -t 2 -c 16 -d 3s http://127.0.0.1:$port/ >wrk.out 2>&1 & load=\$!
		echo ready
		while [ ! -e go ]; do sleep 0.05; done
		wait \$load || exit 1
		kill \$server
		wait \$server
		! grep -E 'errors|Non-2xx' wrk.out && grep -q 'requests in' wrk.out && echo ok"
else
	skip "nginx with wrk: restarted twice in a row" "no nginx or wrk"
fi
done_testing
