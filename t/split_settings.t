#!/bin/bash
# What a program has set, been told or been given of the driver, and is no object, over a
# checkpoint and a restart on several simulated devices; what cannot be set again is refused.
. "${0%/*}/lib.sh"

split=$build/t/split
export LD_LIBRARY_PATH=$build/t/sim SIM_MACHINE_FILE=$scratch/machine
RUN_FLAGS=--gpu=on
echo "devices 4" >"$SIM_MACHINE_FILE"

cycle "$split/settings"
cycle "$split/family"

# refused WHAT PATTERN: a checkpoint with something that cannot be restored; the program lives.
refused() {
	arena "$1"
	if ! launch "$split/settings" "$1"; then
		result 1 "settings $1 starts"
		explain
		return
	fi
	if [ "$1" = graph-memory ]; then echo "graph_memory 4096" >>"$SIM_MACHINE_FILE"; fi
	: >ckpt.err
	not_ok "$1: refused" quiet checkpoint
	like "$(cat ckpt.err)" "$2" "and why"
	finish && [ "$status" = 0 ] && said_ok
	result $? "and the program is unharmed" || explain
	sweep 2 >/dev/null
}

refused thread-stream "it holds 1 setting of a thread's default stream,"
refused parts "it holds 1 description of a part of a GPU"
refused graph-memory "it holds 4096 bytes of device memory that CUDA graphs have allocated"
refused memory "it holds 1 setting of memory,"
for how in set cache ask launch launch-ex; do
	refused function-$how "it uses a kernel that it has not asked for by its name"
done
refused unknown "it has called function 1 of the driver.s table (99){16}, which has no name"
refused list "it holds 1 CUDA module linked with addresses of its own"
refused gone "a CUDA module was loaded from memory that no longer exists"
refused heap "its kernel count has used malloc on the device"

done_testing
