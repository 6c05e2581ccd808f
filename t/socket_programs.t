#!/bin/bash
# Servers and clients as their users run them, both in the tree, saved in the middle of their talk:
# what they give after two restarts is what an undisturbed run gives.
. "$(dirname "$0")/lib.sh"

source=$top/t/application

have python3 || skip_all "no python3"

application "socketserver of python and clients in threads" python3 -c '
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

application "asyncio of python, server and clients in two processes" python3 -c '
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
	cat >"$scratch/client.py" <<-'E'
		import os, socket, sys
		where, key = sys.argv[1], sys.argv[2].encode()
		s = socket.socket(socket.AF_UNIX if "/" in where else socket.AF_INET)
		s.connect(where if "/" in where else ("127.0.0.1", int(where)))
		f = s.makefile("rwb")
		n = 0
		while n < 1000 or not os.path.exists("go"):
		    f.write(b"INCR " + key + b"\r\n" + b"ECHO x\r\n" * 3)
		    if n < 1000:
		        f.write(b"ZADD order %d %s%d\r\nHSET of:%s %d %s\r\n" %
		            (n, key, n, key, n, b"y" * (n % 300)))
		    f.flush()
		    n += 1
		    answer = f.readline()
		    assert answer == b":%d\r\n" % n, answer
		    for i in range(8 if n <= 1000 else 6):
		        f.readline()
	E
	# Another process writes it all to a file while the clients go on.
	redis() {
		bash -c "
			redis-server --port $port --bind 127.0.0.1 --unixsocket \$PWD/redis \
				--save '' --appendonly yes --appendfsync everysec --daemonize no \
				>redis.log 2>&1 </dev/null &
			server=\$!
			until redis-cli -p $port ping >/dev/null 2>&1; do sleep 0.02; done
			for where in $port \$PWD/redis $port; do
				n=\$((n + 1))
				python3 $scratch/client.py \$where key\$n &
				clients=\"\$clients \$!\"
			done
			until redis-cli -p $port zcard order | grep -q .; do sleep 0.02; done
			echo ready
			redis-cli -p $port bgrewriteaof >/dev/null
			for c in \$clients; do wait \$c || exit 1; done
			redis-cli -p $port <<-'END' | sort | md5sum
				zrange order 0 -1 withscores
				hgetall of:key1
				hgetall of:key2
				hgetall of:key3
			END
			redis-cli -p $port shutdown
			wait \$server
			echo \$?"
	}
	port=$(free_port)
	export -f redis
	export port scratch
	application "redis-server with clients" bash -c redis
else
	skip "redis-server with clients" "no redis-server"
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
				location /file { root html; sendfile on; }
				location /again { proxy_pass http://127.0.0.1:$port/file; }
			}
		}
	E
	site() {
		mkdir tmp html
		seq 1 20000 >html/file
		chmod -R a+rX .
	}
	# The load ends by itself; afterwards there is another.
	chmod 711 "$scratch"
	PREPARE=site application "nginx with wrk" bash -c "
		nginx -p \$PWD -c $scratch/nginx.conf -e error.log >/dev/null 2>&1 </dev/null &
		server=\$!
		until (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null; do sleep 0.02; done
		for path in / /file /again; do
			wrk -t 2 -c 8 -d 2s --timeout 30s http://127.0.0.1:$port\$path >wrk.\${path#/} 2>&1 &
			loads=\"\$loads \$!\"
		done
		echo ready
		for l in \$loads; do wait \$l; echo \$?; done
		$wait_go
		wrk -t 1 -c 4 -d 1s http://127.0.0.1:$port/again >wrk.2 2>&1
		grep -LE '[1-9][0-9]* requests in' wrk.*
		grep -hE 'Non-2xx|Socket errors' wrk.*
		kill -QUIT \$server
		wait \$server
		echo \$?
		cat error.log"
else
	skip "nginx with wrk" "no nginx or wrk"
fi

if [ -x "$build/t/application/talk" ]; then
	application "Go, server and client" bash "$source/talk.sh" socket \
		"$build/t/application/talk" server socket -- "$build/t/application/talk" client
else
	skip "Go, server and client" "no go"
fi

if have javac && have java; then
	javac -d "$scratch/classes" "$source/Talk.java"
	application "Java, server and client" bash "$source/talk.sh" '' \
		java -cp "$scratch/classes" Talk server -- java -cp "$scratch/classes" Talk client
	rmdir "/tmp/hsperfdata_$(id -un)" 2>/dev/null # the virtual machine's
else
	skip "Java, server and client" "no JDK"
fi

# Debian keeps most of its programs out of PATH. It does not run as root.
postgres=
for dir in /usr/lib/postgresql/*/bin "$(dirname "$(command -v initdb)")"; do
	[ -x "$dir/postgres" ] && [ -x "$dir/pgbench" ] && [ -x "$dir/pg_isready" ] && postgres=$dir
done
as=
if am_root; then as=$as_nobody; fi
cluster() {
	mkdir data
	[ -z "$as" ] || chown 65534:65534 data
}
if [ -n "$postgres" ]; then
	chmod 711 "$scratch"
	# shellcheck disable=SC2086
	PREPARE=cluster application "PostgreSQL with pgbench" bash "$source/postgres.sh" "$postgres" $as ||
		# It removes what a killed server has left behind, shared memory for instance.
		$as "$postgres/postgres" --single -D data/base postgres </dev/null >/dev/null 2>&1
else
	skip "PostgreSQL with pgbench" "no PostgreSQL"
fi
done_testing
