#!/bin/bash
# System calls of trecr-run's own fail, one at a time, of every class and in every phase. A
# checkpoint then fails with a message or succeeds all the same, leaves nothing behind, and the
# program runs on unharmed. (Restarts: restart_faults.t.)
TEST_LIMIT=${TEST_LIMIT:-1800}
. "$(dirname "$0")/lib.sh"
. "$top/t/faults.sh"

trecr-run() {
	exec $preload TRECR_FAULT="$PWD/fault" "$build/trecr-run" "$@"
}

# Faults of one class in one phase of checkpoints, or in any, until one has come too late to be
# met.
checkpoints() { # CLASS [PHASE]
	local n=1 rc what
	while :; do
		what="call $n of class $1${2:+ in phase $2}"
		# shellcheck disable=SC2086
		faults fault "$1" $n ${2:-}
		path=$(trecr-ckpt -t 60 "$sup" 2>ckpt.err)
		rc=$?
		if ! faults fault off; then
			why="without a fault, after $what: $(cat ckpt.err; find ck -name '*.tmp')"
			[ $rc = 0 ] && nothing_unfinished && why=
			return
		fi
		fired=$((fired + 1))
		why="$what: status $rc, $(cat ckpt.err)"
		[ -e "/proc/$sup" ] || return 1
		if [ $rc = 0 ]; then [ -d "$path" ]; else one_line ckpt.err; fi || return 1
		# An old checkpoint that could not be removed goes with the next one.
		why="$what left something unfinished: $(find ck -name '*.tmp')"
		[ $rc = 0 ] || nothing_unfinished || return 1
		why=
		further
	done
}

all_faults() {
	for phase in "" freeze dump write commit thaw; do
		local dense=$((${#phase} ? 3 : 1))
		for class in $(faults classes); do
			fired=0
			checkpoints "$class" $phase
			[ -z "$why" ] || return 1
			[ $fired = 0 ] || met+=" ${phase:-any}/$class:$fired"
		done
	done
}

# The supervisor has no more open than @1 descriptors, once it has closed what the last request
# came by.
no_more_open() {
	local i
	for ((i = 0; i < 20; i++)); do
		now=$(find "/proc/$sup/fd" -type l | wc -l)
		[ "$now" -gt "$1" ] || return 0
		await -t 1 -e never 2>/dev/null
	done
	return 1
}

# A connection to the outside, to be kept: for tcp_outside.
connect_outside() {
	serve hello >served &
	args=("$(await -t 60 served '^[0-9]+$')" undisturbed sent)
	printf hello >sent
	RUN_FLAGS+=" --tcp=keep"
}

programs="tree_shared tree_clones pty_session sysv sockets_tree"
! tables >/dev/null 2>&1 || [ -z "${TRECR_APART:-}" ] || programs+=" tcp_outside"
for v in ${CHECKPOINT_FAULTS:-$programs}; do
	arena "$v"
	faults fault
	traces >before
	met=
	opened=0
	why="no start"
	RUN_FLAGS=--keep=2
	args=()
	[ "$v" != tcp_outside ] || connect_outside
	launch "$victim/$v" "${args[@]}" && checkpoint && opened=$(find "/proc/$sup/fd" -type l | wc -l) &&
		why= && all_faults
	is "$why" "" "$v: checkpoints with a fault each"
	note "$v:$met"
	ok "$v: the supervisor keeps no descriptor" no_more_open "$opened" ||
		ls -l "/proc/$sup/fd" >&2
	finish && [ "$status" = 0 ] && said_ok
	result $? "$v: the program is unharmed" || explain
	sweep >/dev/null
	ok "$v: nothing is left behind" nothing_left || cat left >&2
done

# Every call that has to do with the program itself, with one thread to be seen to: after each
# fault the next checkpoint is a good one at once. What runs on its way home is out of the way.
each_call() { # CLASS
	local n=1
	faults fault
	launch "$victim/idle" && checkpoint || { why="no start"; return; }
	while :; do
		faults fault "$1" $n dump
		trecr-ckpt -t 60 "$sup" >/dev/null 2>ckpt.err
		faults fault off || break
		trecr-ckpt -t 60 "$sup" >/dev/null 2>after.err ||
			why+=" $n: $(cat ckpt.err), then $(cat after.err);"
		n=$((n + 1))
	done
	[ $n -gt 1 ] || why="none of them was met"
	note "class $1: $((n - 1)) calls"
	finish && said_ok || why+=" the program is harmed"
	sweep >/dev/null
}

for class in trace memory; do
	arena each_call
	why=
	each_call $class
	is "$why" "" "a good checkpoint after each fault of class $class"
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
		await -t 60 -p "$sup" 2>/dev/null
		if [ -n "$killer" ]; then
			outlived=$((outlived + 1))
			await -t 60 -p "$killer" 2>/dev/null
		fi
		wait "$sup"
		kill -USR1 "$inside"
		await -t 60 -p "$inside" 2>/dev/null
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
done_testing
