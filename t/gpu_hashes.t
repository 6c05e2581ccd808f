#!/bin/bash
# Device memory is hashed by the device: what has not changed, and what is zero, is not copied from
# it. On the simulated driver, whose kernel is an implementation of its own.
. "${0%/*}/lib.sh"

split=$build/t/split
export LD_LIBRARY_PATH=$build/t/sim
RUN_FLAGS="--gpu=on --incremental"

kilobytes() {
	du -sk "$1" | cut -f1
}
change() {
	changes=$((${changes:-0} + 1))
	kill -USR2 "$sup"
	await -t 60 -p "$sup" out "^changed $changes\$" >/dev/null
}
# with_failing CALL STEP...: the first such call of the driver's fails meanwhile.
with_failing() {
	echo "$1:1:999" >fail
	"${@:2}"
	local failed=$?
	rm fail
	return $failed
}
whole() {
	finish && [ "$status" = 0 ] && grep -qx ok out
}

arena hashed
export SIM_FAIL_FILE=$PWD/fail
launch "$split/changing_blocks" || explain
ok "a checkpoint" checkpoint
full=$(kilobytes "$path")
ok "what has not changed is not copied" with_failing cuMemcpyDtoHAsync_v2 checkpoint || explain
same=$(kilobytes "$path")
ok "without the kernel all is copied" with_failing cuModuleGetFunction checkpoint
ok "and has the hashes that the device found" [ "$(kilobytes "$path")" -lt $((same + 500)) ]
ok "nor does it matter when it cannot be launched" with_failing cuLaunchKernel checkpoint
ok "nor to the image" [ "$(kilobytes "$path")" -lt $((same + 500)) ]
change
not_ok "what has changed is copied" with_failing cuMemcpyDtoHAsync_v2 quiet checkpoint
for i in 1 2 3; do
	change
	ok "a checkpoint after change $i" checkpoint
	ok "stores little" [ "$(kilobytes "$path")" -lt $((full / 3)) ]
done
ok "all of it is right" quiet trecr-inspect --verify "$path"
freeze_away || explain
restart_here --incremental || explain
change
ok "a checkpoint after a restart" checkpoint
ok "continues the chain" [ "$(kilobytes "$path")" -lt $((full / 3)) ]
ok "and is right" quiet trecr-inspect --verify "$path"
kill -KILL "$(program_of "$sup")"
await -p "$sup"
ok "restart from a chain" restart_here
ok "all memory is as it was" whole || explain

arena copied
export SIM_FAIL_FILE=$PWD/fail
changes=0
launch "$split/changing_blocks" || explain
ok "a first checkpoint without the kernel" with_failing cuModuleGetFunction checkpoint
ok "is as large" [ "$(kilobytes "$path")" -gt $((full - 500)) ]
change
ok "one with it stores little" checkpoint
ok "of that" [ "$(kilobytes "$path")" -lt $((full / 3)) ]
freeze_away || explain
ok "it restarts" restart_here
ok "and all memory is as it was" whole || explain

done_testing
