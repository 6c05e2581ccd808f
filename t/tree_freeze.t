#!/bin/bash
# A tree that makes processes as fast as it can is frozen whole: a process that is missed survives
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

# checkpoint_again: one more try where trecr-ckpt says so.
checkpoint_again() {
	checkpoint || { tail -n 1 ckpt.err | grep -q 'try again later$' && checkpoint; }
}

# execve(2) in a thread ends the others, and waits for them.
arena execs
launch "$victim/tree_execs"
bad=
for ((i = 1; i <= 15; i++)); do
	checkpoint_again || bad+=" $i: $(tail -n 1 ckpt.err)"
done
is "$bad" "" "15 checkpoints of threads that execute programs"
finish
is "$status" 0 "which run on" || explain
sweep >/dev/null
scenario "tree_execs: restarted twice in a row" twice "$victim/tree_execs"

# So does one of a thread that is traced when the main thread has made others which are not known yet.
traced() {
	exec env LD_PRELOAD="$build/t/slow.so" TRECR_SLOW=300000 "$build/trecr-run" "$@"
}
arena traced
traced -d ck -- "$victim/traced_exec" </dev/null >out 2>err &
sup=$!
await -t 60 -p $sup out '^ready$' >/dev/null 2>await.err
ok "a checkpoint while a program is executed that ends threads made meanwhile" quiet checkpoint || explain
finish
is "$status" 0 "which runs on" || explain
sweep >/dev/null

# Such a thread that is found only when others have been stopped: attaching to it waits for its execve(2), and
# what is left of the others is gone then.
arena found_late
found_late() {
	exec env LD_PRELOAD="$build/t/slow.so" TRECR_SLOW=300000 TRECR_SLOW_FILE=found TRECR_TEST_TRIES_AGAIN=again \
		"$build/trecr-run" "$@"
}
found_late -d ck -- "$victim/traced_exec" found </dev/null >out 2>err &
sup=$!
await -t 60 -p $sup out '^ready$' >/dev/null 2>await.err
await -t 60 -p $sup -e again 2>>await.err && echo "a second attempt" >second && rm again &
ok "a checkpoint while a thread that is found late executes a program" quiet checkpoint || explain
ok "at the first attempt" test ! -e second || explain second
finish
is "$status" 0 "which runs on" || explain
sweep >/dev/null

# Whose main thread has ended is found by its other threads, an orphan too.
cycle orphan_thread

# vfork(2) holds the parent in the kernel until the child executes a program or ends, which may be a sibling
# or a thread.
for v in tree_spawns tree_vforks; do
	arena "$v"
	launch "$victim/$v"
	bad=
	for ((i = 1; i <= 20; i++)); do
		checkpoint || bad+=" $i: $(tail -n 1 ckpt.err)"
	done
	is "$bad" "" "20 checkpoints of processes that wait for others by vfork ($v)"
	finish
	is "$status" 0 "which run on" || explain
	sweep >/dev/null
done
scenario "tree_vforks: restarted twice in a row" twice "$victim/tree_vforks"

# Held up for longer than a freeze may last, as on a suspended machine, when its last process has been asked to stop: the
# program has made none meanwhile.
arena held_up
faults fault
held_up() {
	exec env LD_PRELOAD="$build/t/fault.so" TRECR_FAULT="$PWD/fault" "$build/trecr-run" "$@"
}
# shellcheck disable=SC2016
held_up -d ck -- sh -c 'sleep 1000 & trap "kill $!; echo ok; exit 0" USR1; echo ready; wait' </dev/null >out 2>err &
sup=$!
await -t 60 -p $sup out '^ready$' >/dev/null 2>await.err
faults fault wait 1 freeze hold
checkpoint &
asked=$!
until faults fault fired || ! kill -0 $asked; do
	await -t 0.02 -e never
done 2>/dev/null
ok "a freeze is held up" faults fault fired
await -t 11 -p $asked 2>/dev/null # FREEZE_LIMIT_NS, and a second
faults fault off
ok "and the checkpoint is taken all the same" wait $asked || explain
finish
is "$status" 0 "the program runs on" || explain
sweep >/dev/null

# posix_spawn(3) holds its caller until the child has opened its files. Named is the thread that waits.
cat >"$scratch/opens.py" <<-'END'
	import os
	os.mkfifo("fifo")
	print("ready", flush=True)
	os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "fifo", os.O_RDONLY, 0)])
	print("ok")
END
if ! have python3; then
	skip "a child that executes no program" "no python3"
else
	arena fifo
	launch python3 "$scratch/opens.py"
	program=$(program_of "$sup")
	await -t 60 -p "$sup" "/proc/$program/status" '^State:[[:space:]]*D' >/dev/null 2>await.err
	not_ok "no checkpoint while a child made by vfork executes no program" trecr-ckpt -t $((2 * slow)) "$sup" 2>ckpt.err
	like "$(cat ckpt.err)" "thread $program of process $program waits for what it has made by vfork to execute a program or to end; try again later" \
		"and the thread that waits is named"
	: <>fifo
	await -t 60 -p "$sup" 2>>await.err
	is "$(tail -n 1 out)" ok "and the program goes on" || explain
	sweep >/dev/null
fi
done_testing
