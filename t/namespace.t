#!/bin/bash
# Restarts in a pid namespace, as every ordinary user gets them: the same promises.
. "$(dirname "$0")/lib.sh"

not_ok "trecr-restart --namespace needs a directory" quiet trecr-restart --namespace
RESTART_FLAGS=--namespace
for v in program anon threads raw_clone robust rseq dispositions pending posix_timers \
	file_offsets pipes fd_owner process sched credentials memfd; do
	cycle $v
done

arena outside
launch "$victim/idle" catch && freeze_away
restart_here
inside=$(program_of "$sup")
ok "the program can be named from outside too" quiet trecr-ckpt "$inside" || explain
kill -USR2 "$sup"
ok "signals are passed on into the namespace" quiet await -t 10 -p "$sup" out '^signal 12$'
kill -KILL "$inside"
await -t 10 -p "$sup" && wait "$sup" 2>/dev/null
is $? 137 "the status of a program in a namespace"
ok "its init is gone with it" sweep 5
done_testing
