#!/bin/bash
# CUDA arrays come back with their contents, textures and surfaces with their numbers, over the simulated
# driver.
. "${0%/*}/lib.sh"

split=$build/t/split
export LD_LIBRARY_PATH=$build/t/sim
RUN_FLAGS=--gpu=on

cycle "$split/textures"
RUN_FLAGS="--gpu=on --incremental" RESTART_FLAGS=--incremental cycle "$split/textures"

# A driver that gives out other numbers: seen before the program is ended, and at a restart.
arena numbers
export SIM_MACHINE_FILE=$PWD/machine
if launch "$split/textures"; then
	echo "textures_from 3" >machine
	: >ckpt.err
	not_ok "other numbers for textures: tried, and the program goes on" quiet checkpoint -s
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
