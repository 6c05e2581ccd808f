#!/bin/bash
# Packages: redis-server redis-tools. Needs: redis-server redis-cli redis-benchmark
redis-server --port 0 --unixsocket "$PWD/s" --save '' --appendonly no --dir . >redis.log 2>&1 &
server=$!
ask() {
	redis-cli -s "$PWD/s" "$@"
}
until ask ping >/dev/null 2>&1; do kill -0 $server || exit 1; sleep 0.05; done
for ((k = 0; k < 300; k++)); do echo "zadd z $((k * 7919 % 1009)) m$k"; echo "append s $k"; done | ask >/dev/null
redis-benchmark -s "$PWD/s" -q -c 10 -l -t incr,lpush >benchmark.log 2>&1 &
load=$!
until [ "$(ask get counter:__rand_int__)" -gt 1000 ] 2>/dev/null; do sleep 0.05; done
echo ready
while [ ! -e go ]; do sleep 0.05; done
kill $load
wait $load
ask zrange z 0 -1 withscores | cksum
ask get s | cksum
ask ttl s
ask shutdown nosave
wait $server
echo "status $?"
