#!/bin/bash
# A tree that makes processes as fast as it can is frozen whole: whoever is missed survives
# trecr-ckpt -s, and is not in the image.
TEST_LIMIT=${TEST_LIMIT:-600} # forty trees, on a busy machine
. "$(dirname "$0")/lib.sh"

runs=${FREEZE_RUNS:-40}
missed=
failed=
broken=
for ((i = 1; i <= runs; i++)); do
	arena chains
	if ! launch "$victim/tree_chains" || ! freeze_away; then
		failed+=" $i"
		explain
		sweep
		break
	fi
	sweep 60 >sweep.out || missed+=" $i ($(cat sweep.out))"
	[ ! -e survivor ] || missed+=" $i"
	((i % 10)) && continue
	printf 'ready\n' >out
	restart_here && finish && [ "$status" = 0 ] && said_ok ||
		{ broken+=" $i" && explain; }
	sweep >/dev/null
done
is "$failed" "" "$runs checkpoints of 8 chains of processes"
is "$missed" "" "nobody is missed"
is "$broken" "" "no chain is broken by a restart"

# execve(2) in a thread ends the others, and waits for them.
arena execs
launch "$victim/tree_execs"
bad=
for ((i = 1; i <= 15; i++)); do
	checkpoint || bad+=" $i: $(tail -n 1 ckpt.err)"
done
is "$bad" "" "15 checkpoints of threads that execute programs"
finish
is "$status" 0 "which run on" || explain
sweep >/dev/null
scenario "tree_execs: restarted twice in a row" twice "$victim/tree_execs"

# Whose main thread has ended is found by its other threads, an orphan too.
cycle orphan_thread

# vfork(2) holds the parent in the kernel until the child executes a program.
arena spawns
launch "$victim/tree_spawns"
bad=
for ((i = 1; i <= 20; i++)); do
	checkpoint || bad+=" $i: $(tail -n 1 ckpt.err)"
done
is "$bad" "" "20 checkpoints of processes that spawn others by vfork"
finish
is "$status" 0 "which run on" || explain
sweep >/dev/null
done_testing
