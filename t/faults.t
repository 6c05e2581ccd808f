#!/bin/bash
# System calls of trecr's own fail, one at a time, of every kind and at every phase. A checkpoint
# then fails with a message or succeeds all the same, and the program goes on unharmed; a restart
# fails and leaves nothing behind, or the program is whole.
. "$(dirname "$0")/lib.sh"

preload="env LD_PRELOAD=$build/t/fault.so"

trecr-run() {
	exec $preload TRECR_FAULT="$PWD/fault" "$build/trecr-run" "$@"
}

# The next call to fail: all at first, then fewer and fewer.
further() {
	n=$((n < ${dense:-6} ? n + 1 : n * 2))
}

one_line() {
	[ "$(wc -l <"$1")" = 1 ] && grep -q '^trecr-' "$1"
}

# Faults of one class in checkpoints, until one has come too late to be met.
checkpoints() { # CLASS
	local n=1 rc
	while :; do
		faults fault "$1" $n
		path=$(trecr-ckpt -t 60 "$sup" 2>ckpt.err)
		rc=$?
		if ! faults fault off; then
			[ $rc = 0 ] && return
			why="without a fault, after call $n of class $1: $(cat ckpt.err)"
			return 1
		fi
		fired=$((fired + 1))
		why="call $n of class $1: status $rc, $(cat ckpt.err)"
		[ -e "/proc/$sup" ] || return 1
		if [ $rc = 0 ]; then [ -d "$path" ]; else one_line ckpt.err; fi || return 1
		why="call $n of class $1 left something unfinished: $(find ck -name '*.tmp')"
		[ -z "$(find ck -name '*.tmp')" ] || return 1
		why=
		further
	done
}

restarts() { # CLASS
	local n=1 rc dense=3
	# Those of the new processes, whose first steps nothing may be mistaken in.
	[ "$1" != open ] || dense=40
	while :; do
		faults fault "$1" $n
		rm -f up
		# shellcheck disable=SC2086
		$preload TRECR_FAULT="$PWD/fault" "$build/trecr-restart" --pidfile up ck \
			</dev/null >>out 2>restart.err &
		sup=$!
		rc=0
		await -t 60 -p $sup up '^[0-9]+$' >/dev/null 2>&1 || rc=1
		faults fault off || missed=1
		why="call $n of class $1: status $rc, $(cat restart.err)"
		if [ $rc = 0 ]; then
			trecr-ckpt -s "$sup" >/dev/null 2>>restart.err &&
				await -t 30 -p "$sup" || return 1
		else
			wait "$sup"
			[ $? = 125 ] && grep -q '^trecr-restart: ' restart.err && sweep 2 &&
				[ "$(cat out)" = ready ] || return 1
		fi
		[ -z "$missed" ] || return 0
		fired=$((fired + 1))
		further
	done
}

for v in tree_shared tree_clones pty_session sysv; do
	arena "$v"
	faults fault
	fired=0
	why=
	RUN_FLAGS=--keep=2
	launch "$victim/$v" || why="no start"
	for class in $(faults classes); do
		[ -z "$why" ] && checkpoints "$class"
	done
	is "$why" "" "$v: checkpoints with a fault each"
	note "$fired faults"
	finish && [ "$status" = 0 ] && said_ok
	result $? "$v: the program is unharmed" || explain
	sweep >/dev/null
done

# The supervisor is killed between taking out what is under way and putting it back: nothing is
# lost. While the program stands still, terminals are controlled and queues read by a process that
# outlives it.
taken_out() { # VICTIM CLASS
	local n=1 outlived=0 killer
	while :; do
		faults fault
		launch "$victim/$1" || { why="no start"; return; }
		inside=$(program_of "$sup")
		faults fault "$2" $n kill
		trecr-ckpt -t 60 "$sup" >/dev/null 2>ckpt.err
		faults fault off || break
		killer=$(faults fault killer)
		await -t 20 -p "$sup" 2>/dev/null
		if [ -n "$killer" ]; then
			outlived=$((outlived + 1))
			await -t 20 -p "$killer" 2>/dev/null
		fi
		wait "$sup"
		kill -USR1 "$inside"
		await -t 20 -p "$inside" 2>/dev/null
		said_ok || why+=" $n: $(tail -n 1 out);"
		n=$((n + 4))
	done
	finish
	sweep >/dev/null
	note "class $2: up to call $n, $outlived of them outlived the supervisor"
	[ $outlived -gt 0 ] || why+=" no call of class $2 while it was taken out"
}

for what in "pty control" "pty write" "mqueue queue"; do
	arena taken_out
	why=
	# shellcheck disable=SC2086
	taken_out $what
	is "$why" "" "${what% *}: SIGKILL to the supervisor in calls of class ${what#* }"
done

for v in tree_shared pty_session; do
	arena restarts
	faults fault
	RUN_FLAGS=
	launch "$victim/$v" && freeze_away
	fired=0
	why=
	failed=
	for class in $(faults classes); do
		missed=
		restarts "$class" || failed=$why
		[ -z "$failed" ] || break
	done
	is "$failed" "" "$v: restarts with a fault each"
	note "$fired faults"
	rm -f out && echo ready >out
	restart_here && finish && [ "$status" = 0 ] && said_ok
	result $? "$v: it comes back whole after them" || explain
	sweep >/dev/null
done
done_testing
