#!/bin/bash
# Programs that hold one object of the driver after the other: a checkpoint after each step is refused for what cannot
# be restored, by name, and taken as soon as that is gone.
. "${0%/*}/lib.sh"

split=$build/t/split
export LD_LIBRARY_PATH=$build/t/sim
RUN_FLAGS=--gpu=on

# steps: a checkpoint after each that the program takes, refused for what it says it holds.
steps() {
	local n line held
	for ((n = 1; ; n++)); do
		kill -USR1 "$sup"
		line=$(await -p "$sup" out "^(step|last) $n: ") || return
		held=${line#*: }
		: >ckpt.err
		if checkpoint; then
			[ "$held" = nothing ] || echo "after step $n: not refused for $held"
		else
			grep -qF "it holds $held which cannot be restored" ckpt.err ||
				echo "after step $n: not for $held but $(cat ckpt.err)"
		fi
		[ "${line%% *}" != last ] || return 0
	done
}

# comes_back: the last checkpoint restarts, with all as it was.
comes_back() {
	freeze_away && restart_here && finish && [ "$status" = 0 ] && [ "$(tail -n 1 out)" = ok ]
	result $? "the last checkpoint restarts, and all is as it was" || explain
}

# A checkpoint that linker states forbid waits until the time limit.
RUN_FLAGS="--gpu=on --drain-timeout=3"
arena survivors
if started "$split/survivors"; then
	is "$(steps)" "" "objects that outlive what they were made of, and such as go with it"
	comes_back
fi
sweep 2 >/dev/null

RUN_FLAGS=--gpu=on

arena external
if started "$split/external"; then
	is "$(steps)" "" "memory and semaphores of other interfaces, and what is made of them"
	like "$(cat err)" "cuImportExternalMemory: the descriptor is of cuMemExportToShareableHandle" \
		"what is no memory of another interface is refused"
	comes_back
fi
sweep 2 >/dev/null

arena green
if started "$split/survivors" green; then
	is "$(steps)" "" "a stream that outlives its green context"
	finish && [ "$status" = 0 ] && [ "$(tail -n 1 out)" = ok ]
	result $? "and the program is unharmed" || explain
fi
sweep 2 >/dev/null

done_testing
