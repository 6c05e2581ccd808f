#!/bin/bash
# A process of the program is stopped at a step of a checkpoint and continued some steps later, or
# after it has resumed, at one step after the other: no signal is lost, it runs on as if it had not been
# saved, and so does the restarted program.
TEST_LIMIT=${TEST_LIMIT:-600}
. "$(dirname "$0")/lib.sh"
. "$top/t/steps.sh"

# The supervisor, too, when it has seen its program stopped.
go_on() {
	faults "$scratch/fault" continued || kill -CONT "$target"
	[ "$target" != "$(program_of "$sup")" ] || kill -CONT "$sup"
}

runs_on() {
	finish || { why="it does not run on"; return 1; }
	said_ok || { why="it says $(tail -n 1 out)"; return 1; }
}

# stops WHO CLASS VICTIM...: until a checkpoint needs fewer steps.
stops() {
	local n=1 who=$1 class=$2 met=
	shift 2
	why=
	count=0
	arena "${1##*/}"
	while [ -z "$why" ]; do
		rm -rf ck
		faults "$scratch/fault" off
		launch "$@" || { why="no start"; break; }
		choose "$who"
		((count % 2)) && later=40 || later=0
		faults "$scratch/fault" "$class" $n stop "$target" $later
		checkpoint || { why="step $n: $(tail -n 1 ckpt.err)"; break; }
		faults "$scratch/fault" off && met=1 || met=
		go_on
		FINISH_LIMIT=60
		runs_on || { why="step $n: $why"; break; }
		[ -n "$met" ] || break
		count=$((count + 1))
		if ((count % 3 == 0)); then
			printf 'ready\n' >out
			restart_here || { why="step $n: $(tail -n 1 restart.err)"; break; }
			choose "$who" # saved while it was stopped
			kill -CONT "$target" "$sup"
			runs_on || { why="restarted, step $n: $why"; break; }
		fi
		sweep 2 >/dev/null
		further
	done
	[ -z "$skip_reason" ] || { skip "$1" "$skip_reason"; return; }
	is "$why" "" "${1##*/}: the $who process is stopped and continued at $class calls"
	ok "which were many" [ $count -gt 10 ]
	note "$count of them, up to call $n"
	sweep >/dev/null
}

faults "$scratch/fault"
stops last trace "$victim/tree_shared"
stops root write "$victim/threads"
stops root trace "$victim/mqueue"
done_testing
