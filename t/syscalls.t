#!/bin/bash
# Threads inside system calls that wait: no EINTR, no early return, what is left of a time-out.
. "$(dirname "$0")/lib.sh"

cycle blocked
cycle blocked alone nanosleep
cycle blocked alone futex_timed
cycle blocked epoll_wait
cycle blocked epoll_pwait2
cycle blocked recv
for kind in semtimedop io_uring msgrcv splice; do
	cycle blocked $kind
done
if perl -e 'exit(syscall(434, $$ + 0, 0200) < 0)'; then
	cycle blocked ended recv nanosleep
else
	skip "blocked, without the first thread" "this kernel does not know pidfds of threads"
fi
cycle naps

# Each checkpoint would give it all of its time again: it would never end.
arena interval
name="a time-out ends that is longer than the interval of checkpoints"
if RUN_FLAGS="-i 2" launch "$victim/blocked" alone io_uring; then
	ok "$name" quiet await -t 60 -p "$sup" out '^ok$'
elif [ -n "$skip_reason" ]; then
	skip "$name" "$skip_reason"
else
	result 1 "$name" || explain
fi
sweep >/dev/null

cycle partial
done_testing
