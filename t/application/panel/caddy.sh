#!/bin/bash
# Packages: caddy curl. Needs: caddy curl
# A web server in Go with an administrator's interface, by which it is configured anew.
export HOME=$PWD XDG_DATA_HOME=$PWD XDG_CONFIG_HOME=$PWD
mkdir www
seq 50000 >www/data
cat >Caddyfile <<END
{
	admin unix//$PWD/a
	auto_https off
}
http://127.0.0.1:$PORT {
	root * $PWD/www
	file_server
	encode gzip
	respond /two 200 {
		body "no"
	}
}
END
caddy run --config Caddyfile --adapter caddyfile 2>caddy.log &
server=$!
get() {
	curl -sS --max-time 60 "$@"
}
until get -o first "http://127.0.0.1:$PORT/data" 2>/dev/null; do kill -0 $server || exit 1; sleep 0.02; done
curl -sS --limit-rate 1K -o slow --max-time 600 "http://127.0.0.1:$PORT/data" &
slow=$!
echo ready
while [ ! -e go ]; do
	get --compressed "http://127.0.0.1:$PORT/data" | cmp - www/data || break
done
kill $slow 2>/dev/null
sed s/no/yes/ Caddyfile >changed
get --unix-socket "$PWD/a" -H 'Content-Type: text/caddyfile' --data-binary @changed http://127.0.0.1/load
get "http://127.0.0.1:$PORT/two"
get --compressed "http://127.0.0.1:$PORT/data" | cksum
kill -INT $server
wait $server
echo "status $?"
