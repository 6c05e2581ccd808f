#!/bin/bash
# A process of the program is killed at each step of a checkpoint or restart, one after the other.
# Both end at once, and say so; nothing waits for a process that is gone, and the others are unharmed.
TEST_LIMIT=${TEST_LIMIT:-600}
. "$(dirname "$0")/lib.sh"
. "$top/t/steps.sh"
FEWER=3

# What is to be when $target has been killed in step $n of the checkpoint of $request.
told() {
	await -t 60 -p $request || { why="trecr-ckpt hangs"; return 1; }
	if wait $request; then
		[ -f "$(cat answer)/job" ] || { why="no image"; return 1; }
	else
		[ "$(wc -l <answer.err)" = 1 ] && grep -Eq "$gone" answer.err ||
			{ why="says $(cat answer.err)"; return 1; }
	fi
	nothing_unfinished || { why="leftover"; return 1; }
	trecr-inspect --verify ck >/dev/null 2>inspect.err || { why=$(cat inspect.err); return 1; }
}
gone='process [0-9]+ (was killed while it was being saved|has ended)$|ended before it had answered$'

after_root() {
	await -t 60 -p "$sup" || { why="the supervisor hangs"; return 1; }
	wait "$sup"
	status=$?
	[ $status = 137 ] || { why="status $status"; return 1; }
}

# A checkpoint that failed because another process than the first was killed has been tried again.
after_other() {
	[ -s answer ] || { why="no checkpoint: $(cat answer.err)"; return 1; }
	untraced "$root" || { why="traced"; return 1; }
	checkpoint || { why="then: $(tail -n 1 ckpt.err)"; return 1; }
}

# checkpoints WHO CLASS VICTIM...: one with a death at each step, until one needs fewer steps.
checkpoints() {
	local n=1 who=$1 class=$2
	shift 2
	why=
	deaths=0
	arena "${1##*/}"
	while :; do
		rm -rf ck
		faults "$scratch/fault" off
		launch "$@" && checkpoint || { why="no start: $(cat ckpt.err)"; break; }
		choose "$who"
		faults "$scratch/fault" "$class" $n kill "$target"
		trecr-ckpt "$sup" >answer 2>answer.err &
		request=$!
		told || { why="step $n: $why"; break; }
		faults "$scratch/fault" off || break
		deaths=$((deaths + 1))
		if [ "$target" = "$root" ]; then after_root; else after_other; fi ||
			{ why="step $n: $why"; break; }
		sweep 0 >/dev/null
		further
	done
	[ -z "$skip_reason" ] || { skip "$1" "$skip_reason"; return; }
	is "$why" "" "${1##*/}: the $who process is killed at each $class call of a checkpoint"
	ok "which were many" [ $deaths -gt 10 ]
	note "$deaths deaths, up to call $n"
	sweep >/dev/null
}

faults "$scratch/fault"
checkpoints root trace "$victim/threads"
checkpoints root write "$victim/threads"
checkpoints last trace "$victim/tree_shared"
checkpoints last control "$victim/pty_session"

# A restart that fails has been told why; a restart that has come further ends as the program does.
ended() {
	case $status in
	137) return ;;
	125) ;;
	*) return 1 ;;
	esac
	[ "$(grep -c '^trecr-restart: cannot ' restart.err)" = 1 ] &&
		grep -Eq 'cannot restart .* was killed' restart.err
}

# The processes that are left run on as they would without trecr, or are about to end: none is stopped, none is traced.
left_running() {
	local pid state
	for pid in $(nest --list | sed 's/ .*//'); do
		state=$(sed -n 's/^State:	\(.\).*/\1/p' "/proc/$pid/status" 2>/dev/null)
		case $state in [tT]) return 1 ;; esac
		[ -z "$state" ] || untraced "$pid" || return 1
	done
}

# What a restart leaves: nothing when it has failed. When the first process was killed just after all had been let go, the
# others are the program's.
leaves_little() {
	local end=$((SECONDS + 60 * ${TEST_SLOW:-1}))
	if [ $status = 125 ]; then sweep 60; return; fi
	until left_running; do
		[ $SECONDS -lt $end ] || { nest --list; sweep 0 >/dev/null; return 1; }
	done
	sweep 0 >/dev/null
	return 0
}

# restarts WHAT VICTIM FAULT...: until one needs fewer steps.
restarts() {
	local n=1 what=$1 v=$2
	shift 2
	bad=
	deaths=0
	while :; do
		cp -p out.ready out # or else there is a notice
		rm -f up restart.err
		faults "$scratch/fault" "$1" $n "${@:2}"
		$preload "$build/trecr-restart" --pidfile up ck </dev/null >>out 2>restart.err &
		sup=$!
		await -t 60 -p $sup up '^[0-9]+$' >/dev/null 2>&1 || [ ! -e "/proc/$sup" ] ||
			bad+=" $n:hangs"
		faults "$scratch/fault" off || break
		deaths=$((deaths + 1))
		# With another than the first process gone, it may have come up all the same.
		if [ -s up ]; then
			finish || bad+=" $n:does-not-end"
		else
			wait $sup
			status=$?
			ended || bad+=" $n:$status($(cat restart.err))"
			leaves_little >left || bad+=" $n:$status:$(cat left)"
		fi
		further
	done
	is "$bad" "" "$v: $what is killed at each step of a restart"
	ok "which were many" [ $deaths -gt "$many" ]
	note "$deaths deaths, up to call $n"
	finish && [ "$status" = 0 ] && said_ok
	result $? "$v: and the checkpoint still restarts" || explain
	sweep >/dev/null
}

# Without the right to choose process ids the new ones are not known from here.
if am_root; then
	arena restart
	launch "$victim/tree_groups" && choose last && freeze_away && cp -p out out.ready
	many=10
	restarts "the last process" tree_groups trace kill "$target"
	restarts "the first process" tree_groups trace kill "$root"
	# Processes that are made, and make others: some only help.
	restarts "the process that is told to make a call" tree_groups trace create kill tracee
	sweep >/dev/null
	arena sharers
	launch "$victim/tree_clones" orphans && freeze_away && cp -p out out.ready
	restarts "the process that is told to make a call" tree_clones trace create kill tracee
fi
done_testing
