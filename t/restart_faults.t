#!/bin/bash
# System calls of trecr-restart's own fail, one at a time, of every class and in every phase. A
# restart then fails with a message and leaves nothing behind, or the program is whole.
TEST_LIMIT=${TEST_LIMIT:-1800}
. "$(dirname "$0")/lib.sh"
. "$top/t/faults.sh"

# Until the program is there, or the restart has failed; rc says which.
restart_with_fault() {
	rm -f up
	# shellcheck disable=SC2086
	$preload TRECR_FAULT="$PWD/fault" "$build/trecr-restart" --pidfile up ck \
		</dev/null >>out 2>restart.err &
	sup=$!
	rc=0
	await -t 60 -p $sup up '^[0-9]+$' >/dev/null 2>&1 || rc=1
}

# Is all gone again, or all there?
whole() {
	if [ $rc = 0 ]; then
		trecr-ckpt -s "$sup" >/dev/null 2>ckpt.err && await -t 60 -p "$sup" 2>>ckpt.err ||
			{ why+="; and then: $(cat ckpt.err)"; false; }
		return
	fi
	wait "$sup"
	[ $? = 125 ] && grep -q '^trecr-restart: ' restart.err && sweep 60 &&
		[ "$(cat out)" = ready ]
}

# Faults of one class in one phase, until one has come too late to be met.
faults_in() { # CLASS PHASE
	local n=1 rc missed=
	while [ -z "$missed" ]; do
		faults fault "$1" $n "$2"
		restart_with_fault
		faults fault off || missed=1
		why="call $n of class $1 in phase $2: status $rc, $(cat restart.err)"
		whole || return 1
		[ $rc = 0 ] || nothing_left || {
			why="call $n of class $1 in phase $2 left: $(cat left)"
			return 1
		}
		[ -n "$missed" ] || fired=$((fired + 1))
		further
	done
}

all_faults() {
	for phase in check create rebuild registers let-go; do
		for class in $(faults classes); do
			fired=0
			faults_in "$class" $phase || return 1
			[ $fired = 0 ] || met+=" $phase/$class:$fired"
		done
	done
	why=
}

for v in ${RESTART_FAULTS:-tree_shared pty_session sysv unix_rights unix_names}; do
	arena restarts
	faults fault
	why="no start"
	met=
	launch "$victim/$v" && freeze_away && traces >before && all_faults
	is "$why" "" "$v: restarts with a fault each"
	note "$v:$met"
	rm -f out && echo ready >out
	restart_here && finish && [ "$status" = 0 ] && said_ok
	result $? "$v: it comes back whole after them" || explain
	sweep >/dev/null
done
remove_awaited
done_testing
