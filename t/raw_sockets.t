#!/bin/bash
# Sockets other than UNIX, TCP and UDP sockets, and what filters them.
. "$(dirname "$0")/lib.sh"

# Where all may have ICMP sockets.
apart -n
[ -z "${TRECR_APART:-}" ] || loopback_up || exit 1
[ -z "${TRECR_APART:-}" ] || echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range

cycle raw_sockets

# A program of others: it continues counting.
if [ -n "${TRECR_APART:-}" ] && have ping; then
	arena ping
	trecr-run -d ck -- ping -i 0.2 127.0.0.1 </dev/null >out 2>err &
	sup=$!
	await -t 60 -p $sup out 'icmp_seq=2' >/dev/null 2>await.err && freeze_away &&
		restart_detached && await -t 60 -p "$sup" out 'icmp_seq=9' >/dev/null 2>>await.err
	result $? "ping runs on" || explain
	kill -INT "$(program_of "$sup")"
	await -t 60 -p "$sup" 2>>await.err
	like "$(tail -n 3 out)" "packets transmitted, .* received" "and sums up" || explain
	sweep >/dev/null
fi
done_testing
