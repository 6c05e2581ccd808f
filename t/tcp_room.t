#!/bin/bash
# TCP inside the tree: more is under way than the receiver has room for, with the limits that Linux
# has by default.
. "$(dirname "$0")/lib.sh"

am_root || skip_all "needs root"
apart -n
[ -n "${TRECR_APART:-}" ] && loopback_up || skip_all "needs a network namespace"
echo 4096 131072 6291456 >/proc/sys/net/ipv4/tcp_rmem &&
	echo 4096 16384 4194304 >/proc/sys/net/ipv4/tcp_wmem || skip_all "cannot set the limits"

for v in tcp_loopback tcp_orphans; do
	cycle $v
done

# Who may not go beyond the limits is told of them, and nothing is lost.
if have setpriv; then
	arena refused
	setpriv --bounding-set -net_admin --inh-caps -net_admin -- \
		trecr-run -d ck -- "$victim/tcp_orphans" </dev/null >out 2>err &
	sup=$!
	await -t 60 -p $sup out '^ready$' >/dev/null 2>await.err
	not_ok "without the privilege it is refused" quiet checkpoint
	like "$(cat ckpt.err)" "[0-9]+ bytes that were sent to it do not arrive.*tcp_rmem" \
		"the limits are named" || explain
	finish && said_ok
	result $? "and the program has it all" || explain
	sweep >/dev/null
fi
done_testing
