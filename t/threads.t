#!/bin/bash
# Threads: their ids, registers, thread-local data, locks, scheduling.
. "$(dirname "$0")/lib.sh"

for v in threads registers amx fpu_control gs_base signal_masks altstack robust rseq sched raw_clone \
	sync churn directories; do
	cycle $v
done

# What only another thread than the first has is had by a pidfd of that thread (Linux 6.9).
thread_pidfds=yes
perl -e 'exit(syscall(434, $$ + 0, 0200) < 0)' || thread_pidfds=
for v in leader_exit descriptors; do
	if [ -n "$thread_pidfds" ]; then cycle $v; else skip "$v" "this kernel does not know pidfds of threads"; fi
done
arena without_pidfds
confine --no-thread-pidfd trecr-run -d ck -- "$victim/leader_exit" </dev/null >out 2>err &
sup=$!
if await -t 60 -p $sup out '^ready$' >/dev/null 2>await.err; then
	not_ok "a process without its first thread, where there are none" quiet checkpoint
	like "$(cat ckpt.err)" "be copied only from its thread [0-9]+, .*Linux 6\.9" "is refused" || explain
	finish && said_ok
	result $? "and runs on" || explain
else
	skip "a process without its first thread, where there are no pidfds of threads" "no seccomp filters"
fi
sweep >/dev/null

# Whose status is the process's then is the kernel's affair, and was not always the same.
[ -n "$thread_pidfds" ] || {
	skip "threads that end one by one" "this kernel does not know pidfds of threads"
	done_testing
	exit
}
arena status
"$victim/leader_exit" 7 </dev/null >out &
native=$!
await -t 60 -p $native out '^ready$' >/dev/null && kill -USR1 $native
wait $native
native=$?
launch "$victim/leader_exit" 7 && freeze_away && restart_here && finish
is "$status" "$native" "threads that end one by one after the main thread end the process" ||
	explain
said_ok
result $? "which was whole until then" || explain
sweep >/dev/null
done_testing
