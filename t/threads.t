#!/bin/bash
# Threads: their ids, registers, thread-local data, locks, scheduling.
. "$(dirname "$0")/lib.sh"

for v in threads registers fpu_control gs_base signal_masks altstack robust rseq sched raw_clone \
	sync churn; do
	cycle $v
done
TODO="a process whose main thread has ended"
cycle leader_exit
TODO=
done_testing
