#!/bin/bash
# CUDA arrays come back with their contents, textures and surfaces with their numbers, over the simulated
# driver.
. "${0%/*}/lib.sh"

split=$build/t/split
export LD_LIBRARY_PATH=$build/t/sim
RUN_FLAGS=--gpu=on

cycle "$split/textures"
RUN_FLAGS="--gpu=on --incremental" RESTART_FLAGS=--incremental cycle "$split/textures"

# Bytes of arrays and device memory that IMAGE holds itself.
stored_on_gpu() {
	trecr-inspect --regions --json "$1" | tr -d ' ",' | awk -F: '
		$1 == "tag" { is_gpu = $2 == "gpu" }
		$1 == "stored_bytes" && is_gpu { sum += $2 }
		END { print sum + 0 }'
}

# What has not changed since the last checkpoint is not written again.
arena unchanged
RUN_FLAGS="--gpu=on --incremental"
if launch "$split/textures" && checkpoint && checkpoint; then
	ok "a first image holds the contents of arrays" \
		[ "$(stored_on_gpu ck/ckpt-000001)" -gt 10000000 ]
	is "$(stored_on_gpu ck/ckpt-000002)" 0 "an incremental one none of them again"
else
	result 1 "two incremental checkpoints" || explain
fi
sweep 2 >/dev/null
RUN_FLAGS=--gpu=on

# An image has the contents of arrays at addresses that nothing else has.
arena taken
if launch "$split/textures" taken; then
	not_ok "a checkpoint with memory of the program there: refused" quiet checkpoint
	like "$(cat ckpt.err)" "has mapped memory at 0x3e0000001000, an address at which the image" \
		"and why"
	finish && [ "$status" = 0 ] && said_ok
	result $? "and the program runs on" || explain
else
	result 1 "textures taken starts" || explain
fi
sweep 2 >/dev/null

# A driver that gives out other numbers: seen before the program is ended, and at a restart.
arena numbers
export SIM_MACHINE_FILE=$PWD/machine
if launch "$split/textures"; then
	echo "textures_from 3" >machine
	: >ckpt.err
	not_ok "other numbers for textures: tried, and the program runs on" quiet checkpoint -s
	like "$(cat ckpt.err)" "cuTexObjectCreate gives 0x[0-9a-f]+ here, where the program was given 0x" \
		"and why"
	rm machine
	ok "a checkpoint with the same numbers" freeze_away
	echo "textures_from 3" >machine
	: >restart.err
	not_ok "a restart with others is refused" quiet restart_detached
	like "$(cat restart.err)" "cuTexObjectCreate gives 0x[0-9a-f]+ here" "and why"
	rm machine
	restart_here && finish && [ "$status" = 0 ] && said_ok
	result $? "and comes back with the same" || explain
fi
unset SIM_MACHINE_FILE
sweep 2 >/dev/null

done_testing
