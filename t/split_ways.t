#!/bin/bash
# Unusual ways into and out of calls to the driver, and unusual surroundings, before a checkpoint and
# after a restart, over the simulated driver.
. "${0%/*}/lib.sh"

split=$build/t/split
export LD_LIBRARY_PATH=$build/t/sim
RUN_FLAGS=--gpu=on

for way in nested jump exit cancel stacks library children; do
	scenario "$way: restarted twice" twice "$split/ways" "$way"
done

# surroundings NAME COMMAND...: what the program is started by.
surroundings() {
	scenario "$1" twice "${@:2}" "$split/ways" jump
}

surroundings "addresses are not random" setarch -R
surroundings "the stack has no limit" prlimit --stack=unlimited
surroundings "few descriptors" prlimit --nofile=64
surroundings "everything bound at once" env LD_BIND_NOW=1

# Where the driver's contexts are cannot be repeated: the heap for them takes more addresses than that.
if launch prlimit --as=8000000000 "$split/ways" jump; then
	not_ok "little address space: tried, and the program runs on" quiet checkpoint -s
	like "$(cat ckpt.err)" "as memory of the program, or ulimit -v, left no room in 0x" "and why"
	ok "it has taken no harm" finish
	is "$status" 0 "its own checks"
else
	result 1 "a program with little address space starts" || explain
fi

done_testing
