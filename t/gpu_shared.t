#!/bin/bash
# GPU memory, pools and events that processes share with each other, over checkpoints and restarts,
# on the simulated driver; and what is refused.
. "${0%/*}/lib.sh"

split=$build/t/split
export LD_LIBRARY_PATH=$build/t/sim
RUN_FLAGS=--gpu=on

cycle "$split/shares"

# refused WHAT PATTERN: a checkpoint of what shares has brought about; the program lives.
refused() {
	arena "$1"
	if launch "$split/shares" "$1"; then
		: >ckpt.err
		not_ok "$1: refused" quiet checkpoint
		like "$(cat ckpt.err)" "$2" "and why"
		finish && [ "$status" = 0 ] && said_ok
		result $? "and the program is unharmed" || explain
	else
		result 1 "shares $1 starts"
		explain
	fi
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
	if launch "$split/shares" takes "$PWD/../handle"; then
		: >ckpt.err
		not_ok "memory of a process outside of the checkpoint: refused" quiet checkpoint
		like "$(cat ckpt.err)" "of a process that is not part of this checkpoint" "and why"
		finish && [ "$status" = 0 ] && said_ok
		result $? "and the program is unharmed" || explain
	else
		result 1 "shares takes starts"
		explain
	fi
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
