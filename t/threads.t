#!/bin/bash
# Threads: their ids, registers, thread-local data, locks, scheduling.
. "$(dirname "$0")/lib.sh"

for v in threads registers amx fpu_control gs_base signal_masks altstack robust rseq sched raw_clone \
	sync churn leader_exit directories descriptors; do
	cycle $v
done

# Whose status is the process's then is the kernel's affair, and was not always the same.
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
