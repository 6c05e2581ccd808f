#!/bin/bash
# The victims themselves, without trecr: undisturbed each of them passes, and when the very
# state that it holds is spoilt (VICTIM_HURT) it says so. A victim that passes then cannot fail.
. "$(dirname "$0")/lib.sh"

# native COMMAND...: status is its exit status
native() {
	"$@" </dev/null >out 2>err &
	local pid=$!
	await -t 30 -p $pid out '^(ready|skip .*)$' >/dev/null 2>&1
	kill -USR1 $pid 2>/dev/null
	await -t 30 -p $pid 2>/dev/null || kill -9 $pid
	wait $pid 2>/dev/null
	status=$?
}

both() {
	local name=${1##*/}${2:+ ${2##*/}}
	arena x
	native "$@"
	if [ $status = 77 ]; then
		skip "$name passes undisturbed" "$(sed -n 's/^skip //p' out)"
		return
	fi
	[ $status = 0 ] && said_ok
	result $? "$name passes undisturbed" || explain
	arena x
	export VICTIM_HURT=1
	native "$@"
	unset VICTIM_HURT
	[ $status = 1 ] && grep -q '^differs' out
	result $? "$name fails when hurt" || explain
}

for v in "$victim"/*; do
	case $v in
	*.d | *.so | */refuse* | */tcp_outside | */plugins | */show | */lockstep | */rank_pids) continue ;;
	esac
	both "$v"
done
both "$victim/thp" disable
both "$victim/tree_stops" pending
both "$victim/itimers" fire
both "$victim/plugins" "$victim/plugin.so"
[ ! -x "$victim/program-go" ] || both "$victim/program-go" timers
both "$victim/blocked" epoll_wait epoll_pwait2 recv semtimedop msgrcv
for v in "$top"/t/victim/script.*; do
	have "$(sed -n '1s/^#!//p' "$v")" && both "$v"
done
done_testing
