#!/bin/bash
# The supervisor is killed at each of its steps in the program, one after the other: these include
# all moments of the system calls that it runs there. The program runs on as if nothing had happened,
# untraced, and the checkpoint before is whole; a program that is being restored ends.
. "$(dirname "$0")/lib.sh"
. "$top/t/steps.sh"
FEWER=6

# What the program tells when its supervisor has been killed at step $n of a checkpoint.
unharmed() {
	await -t 60 -p "$sup" 2>/dev/null || { why="the supervisor hangs"; return 1; }
	await -t 60 -p $request 2>/dev/null || { why="trecr-ckpt hangs"; return 1; }
	wait $request && { why="trecr-ckpt reports success"; return 1; }
	untraced "$inside" || { why="traced"; return 1; }
	kill -USR1 "$inside"
	await -t 60 -p "$inside" 2>/dev/null || { why="it hangs"; return 1; }
	said_ok || { why="harmed: $(tail -n 1 out)"; return 1; }
	trecr-inspect --verify ck >/dev/null 2>inspect.err || { why=$(cat inspect.err); return 1; }
}

# checkpoints VICTIM...: one with a death at each step, until one needs fewer steps.
checkpoints() {
	local n=1
	why=
	deaths=0
	arena "${1##*/}"
	while :; do
		rm -rf ck
		faults "$scratch/fault" off
		launch "$@" && checkpoint || { why="no start: $(cat ckpt.err)"; break; }
		inside=$(program_of "$sup")
		faults "$scratch/fault" trace $n kill
		trecr-ckpt "$sup" >answer 2>answer.err &
		request=$!
		await -t 60 -p $request
		faults "$scratch/fault" off || { wait $request; break; }
		deaths=$((deaths + 1))
		unharmed || { why="step $n: $why"; break; }
		sweep 2 >/dev/null
		further
	done
	[ -z "$skip_reason" ] || { skip "$1" "$skip_reason"; return; }
	is "$why" "" "${1##*/}: unharmed after a death at each step of a checkpoint" || explain
	ok "which were many" [ $deaths -gt 20 ]
	note "$deaths deaths"
	finish && [ "$status" = 0 ] && said_ok
	result $? "${1##*/}: and after the checkpoint that needed fewer" || explain
	sweep >/dev/null
}

faults "$scratch/fault"
checkpoints "$victim/registers"
checkpoints "$victim/tree_shared"

# Until it is let go a program dies with the process that restores it; afterwards it lives.
arena restart
launch "$victim/threads" && freeze_away
bad=
n=1
deaths=0
while :; do
	printf 'ready\n' >out
	rm -f up
	faults "$scratch/fault" trace $n kill
	$preload "$build/trecr-restart" --pidfile up ck </dev/null >>out 2>restart.err &
	sup=$!
	await -t 60 -p $sup up '^[0-9]+$' >/dev/null 2>&1
	faults "$scratch/fault" off || break
	deaths=$((deaths + 1))
	wait $sup 2>/dev/null
	nest --list | while read -r pid name; do
		[ "$name" != "(threads)" ] || kill -USR1 "$pid" 2>/dev/null
	done
	sweep 60 >left || bad+=" $n:$(cat left)"
	case $(tail -n 1 out) in
	ready | ok) ;;
	*) bad+=" $n:$(tail -n 1 out)" ;;
	esac
	further
done
is "$bad" "" "nothing is left of a restart after a death at each of its steps" || explain
ok "which were many" [ $deaths -gt 20 ]
note "$deaths deaths"
finish && [ "$status" = 0 ] && said_ok
result $? "and the checkpoint still restarts" || explain
done_testing
