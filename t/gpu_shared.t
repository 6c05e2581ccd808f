#!/bin/bash
# GPU memory, pools and events that processes share with each other, over checkpoints and restarts,
# on the simulated driver; and what is refused.
. "${0%/*}/lib.sh"

split=$build/t/split
export LD_LIBRARY_PATH=$build/t/sim
RUN_FLAGS=--gpu=on

cycle "$split/shares"

# refuses WHAT PATTERN ARGUMENT...: a checkpoint of what `shares ARGUMENT...` has brought about; the program lives.
refuses() {
	local what=$1 pattern=$2
	shift 2
	if launch "$split/shares" "$@"; then
		: >ckpt.err
		not_ok "$what: refused" quiet checkpoint
		like "$(cat ckpt.err)" "$pattern" "and why"
		finish && [ "$status" = 0 ] && said_ok
		result $? "and the program is unharmed" || explain
	else
		result 1 "shares $1 starts"
		explain
	fi
}

refused() { # WHAT PATTERN
	arena "$1"
	refuses "$1" "$2" "$1"
	sweep 2 >/dev/null
}

refused freed "has opened GPU memory of another process that has freed it, or has ended"
refused ended "has opened GPU memory of another process that has freed it, or has ended"

# The owner is there, but started by another trecr-run.
arena outside
if launch "$split/shares" offers "$PWD/handle"; then
	owner=$sup
	ck_owner=$PWD/ck
	mkdir other
	cd other || exit
	refuses "memory of a process outside of the checkpoint" \
		"of a process that is not part of this checkpoint" takes "$PWD/../handle"
	cd ..
	sup=$owner
	: >ckpt.err
	ok "a checkpoint of the owner" checkpoint || explain
	finish && [ "$status" = 0 ] && said_ok
	result $? "which is unharmed, too" || explain
else
	result 1 "shares offers starts"
	explain
fi
sweep 2 >/dev/null

done_testing
