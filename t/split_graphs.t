#!/bin/bash
# Graphs come back with the handles that the program has of them and of their nodes, over the simulated
# driver: built, captured, cloned, executable with their graph gone or changed since. What cannot be
# restored is refused.
. "${0%/*}/lib.sh"

split=$build/t/split
export LD_LIBRARY_PATH=$build/t/sim
RUN_FLAGS=--gpu=on

# turn N: the program launches all its graphs, looks at what they did, and changes some.
turn() {
	kill -USR1 "$sup" && await -p "$sup" out "^(turn $1|differs.*)$" >/dev/null 2>>await.err
}

# turns: as three_turns, natively but for the lower half.
all_turns() {
	turn 2 && turn 3 && finish && [ "$status" = 0 ] && said_turns
}

said_turns() {
	[ "$(cat out)" = "ready
turn 2
turn 3
turn 4
ok" ]
}

three_restarts() {
	local n
	for n in 2 3; do
		step="checkpoint before turn $n" && freeze_away && step="its restart" && restart_here &&
			step="turn $n" && turn "$n" || return
	done
	step="third checkpoint" && freeze_away && step="its restart" && restart_here &&
		step="turn 4" && finish && [ "$status" = 0 ] && said_turns &&
		step="leaving nothing behind" && sweep 60
}

scenario "graphs, undisturbed" all_turns "$split/graphs"
scenario "graphs, over three restarts" three_restarts "$split/graphs"

# The same with a checkpoint of a process that runs on.
run_on_turns() {
	checkpoint && step="turn 2" && turn 2 && checkpoint && step="turn 3" && turn 3 && checkpoint &&
		step="turn 4" && finish && [ "$status" = 0 ] && said_turns
}
scenario "graphs, with checkpoints on the way" run_on_turns "$split/graphs"

# Handles, which kernels have among their arguments, are the same; so are bodies that the program holds.
scenario "conditional nodes, undisturbed" all_turns "$split/conditional"
scenario "conditional nodes, over three restarts" three_restarts "$split/conditional"
scenario "conditional nodes, with checkpoints on the way" run_on_turns "$split/conditional"

# A node that goes takes along what an executable knows of nodes inside it.
scenario "nodes in the places of others, undisturbed" all_turns "$split/graph_pairs"
scenario "nodes in the places of others, over three restarts" three_restarts "$split/graph_pairs"

# What they allocate has its addresses, and its contents where the program holds it.
scenario "graphs that allocate, undisturbed" all_turns "$split/graph_memory"
scenario "graphs that allocate, over three restarts" three_restarts "$split/graph_memory"
scenario "graphs that allocate, with checkpoints on the way" run_on_turns "$split/graph_memory"

# When memory of graphs is whose: freed behind streams, by other graphs, after updates, without their graph.
scenario "lifetimes of graph memory, undisturbed" all_turns "$split/graph_lifetimes"
scenario "lifetimes of graph memory, over three restarts" three_restarts "$split/graph_lifetimes"
scenario "lifetimes of graph memory, with checkpoints on the way" run_on_turns "$split/graph_lifetimes"

# Destructors are called once each, when the last reference goes: of the program, graphs, clones, executables.
scenario "user objects, undisturbed" all_turns "$split/user_objects"
scenario "user objects, over three restarts" three_restarts "$split/user_objects"
scenario "user objects, with checkpoints on the way" run_on_turns "$split/user_objects"

# A handle that the driver gives out again is the new object's, also while the old one is being destroyed.
undisturbed() {
	finish && [ "$status" = 0 ] && grep -qx ok out
}
scenario "graphs that many threads make and destroy" undisturbed "$split/graph_threads"

# What cannot be done with graphs that allocate memory, as the driver has it.
arena rules
"$split/graph_rules" >natively 2>&1
is "$(cat natively)" "$(trecr-run -d undisturbed --gpu=on "$split/graph_rules" 2>&1)" "the driver's rules for graphs that allocate memory"
for fact in "destroy-free-node 801" "destroy-allocation-node 801" "update 0" "update-result 0" "update-of-itself 0" \
	"update-from-instantiated 801" "update-from-instantiated-result 0" "update-of-set 910" "update-of-set-result 1" \
	"update-of-set-of-itself 0" "update-of-set-without-graph 910" "executable-after-that 0"; do
	grep -qx "$fact" natively
	result $? "as on an H200: $fact"
done

# refused WHAT PATTERN: a checkpoint with something that cannot be restored; the program lives.
refused() {
	arena "$1"
	if ! launch "$split/graphs" "$1"; then
		result 1 "graphs $1 starts"
		explain
		return
	fi
	: >ckpt.err
	not_ok "$1: refused" quiet checkpoint
	like "$(cat ckpt.err)" "process [0-9]+ \(graphs\): $2" "and why"
	finish && [ "$status" = 0 ] && grep -qx ok out
	result $? "and the program is unharmed" || explain
	sweep 2 >/dev/null
}

export SIM_MACHINE_FILE=$scratch/machine
echo "handles_from 5" >"$SIM_MACHINE_FILE"
refused handle "it holds a CUDA graph with a node that is conditional, which cannot be restored"
rm "$SIM_MACHINE_FILE"
unfollowed="it holds a CUDA graph with references to user objects that could not be followed, which cannot be restored"
refused user "$unfollowed"
refused exchanged "$unfollowed"
SIM_FAIL=cuGraphReleaseUserObject:1:1 refused kept "$unfollowed"
refused freed "it holds a CUDA graph that uses memory at 0x[0-9a-f]+, which has been freed"
refused device "it holds an executable CUDA graph for launches by device code, which cannot be restored"
RUN_FLAGS="--gpu=on --drain-timeout=1"
refused capture "it is capturing a stream into a graph"
refused ending "the destructor of a CUDA user object that has no references any more has not returned yet"

# One that ends within --drain-timeout is waited for.
arena slow
RUN_FLAGS=--gpu=on
launch "$split/graphs" slow && checkpoint && finish && [ "$status" = 0 ] && grep -qx ok out
result $? "a destructor that takes three seconds is waited for" || explain
sweep 2 >/dev/null

# A driver with other handles: seen before the program is ended, and at a restart.
arena handles
RUN_FLAGS=--gpu=on
if launch "$split/conditional"; then
	why="the driver here has other handles for conditional nodes of CUDA graphs: 5, it was 1"
	echo "handles_from 5" >"$SIM_MACHINE_FILE"
	: >ckpt.err
	not_ok "other handles: tried, and the program runs on" quiet checkpoint -s
	like "$(cat ckpt.err)" "$why" "and why"
	rm "$SIM_MACHINE_FILE"
	ok "a checkpoint with the same handles" freeze_away
	echo "handles_from 5" >"$SIM_MACHINE_FILE"
	: >restart.err
	not_ok "a restart with others is refused" quiet restart_detached
	like "$(cat restart.err)" "$why" "and why"
	rm "$SIM_MACHINE_FILE"
	restart_here && turn 2 && turn 3 && turn 4 && await -p "$sup" out '^ok$' >/dev/null && said_turns
	result $? "and comes back with the same" || explain
fi
sweep 2 >/dev/null

done_testing
