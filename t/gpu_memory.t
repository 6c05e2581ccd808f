#!/bin/bash
# Device memory over a checkpoint and a restart, on the simulated driver: at the same addresses,
# with the same contents; and what is refused.
. "${0%/*}/lib.sh"

split=$build/t/split
export LD_LIBRARY_PATH=$build/t/sim
RUN_FLAGS=--gpu=on

cycle "$split/held"
cycle "$split/one_kind_of_memory" managed
cycle "$split/one_kind_of_memory" mapped
cycle "$split/managed"
cycle "$split/managed" freed

# refused WHAT PATTERN: a checkpoint with something that cannot be restored; the program
# lives.
refused() {
	arena "$1"
	if ! launch "$split/held" "$1"; then
		result 1 "held $1 starts"
		explain
		return
	fi
	: >ckpt.err
	not_ok "$1: refused" quiet checkpoint
	like "$(cat ckpt.err)" "$2" "and why"
	sweep 2 >/dev/null
}

refused unmapped "2 MiB of device memory that is not mapped"
refused gone "has registered host memory at 0x[0-9a-f]+ that is no longer mapped"
refused retained "has a handle of device memory that it has not made by cuMemCreate"

# At the restart there is less memory than the program has.
arena room
export SIM_MACHINE_FILE=$PWD/machine SIM_FAIL_FILE=$PWD/fail
if launch "$split/held" && ok "a checkpoint" freeze_away; then
	trecr-inspect ck >inspect.out
	for line in "[0-9]+ allocations of device memory" "[0-9] allocations of managed memory" \
		"2 memory pools" "2 memory handles" "1 contexts" "1 streams"; do
		like "$(cat inspect.out)" "  $line" "trecr-inspect tells ${line#* }"
	done
	: >restart.err
	echo used 8000 >machine
	not_ok "restart with too little memory: refused" quiet restart_detached
	like "$(cat restart.err)" "needs [0-9]+ MiB of memory of GPU 0, of which [0-9]+ MiB are free" \
		"and why"
	is "$(grep -c 'cannot restart' restart.err)" 1 "once"
	leaves_nothing "and nothing is left of it"
	rm machine
	for call in cuMemAddressReserve:1:2 cuMemMap:3:999 cuMemSetAccess:1:999 \
		cuMemHostRegister_v2:1:2; do
		echo "$call" >fail
		: >restart.err
		not_ok "restart with $call: refused" quiet restart_detached
		like "$(cat restart.err)" "cannot be (allocated where it was|reserved again|pinned again)" \
			"and why"
		leaves_nothing "and nothing is left of it"
	done
	rm fail
	ok "it restarts when there is enough" restart_here
	finish && [ "$status" = 0 ] && said_ok
	result $? "and has all its memory" || explain
fi

done_testing
