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
surroundings "little address space" prlimit --as=8000000000
surroundings "everything bound at once" env LD_BIND_NOW=1

done_testing
