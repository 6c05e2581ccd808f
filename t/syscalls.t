#!/bin/bash
# Threads inside system calls that wait: no EINTR, no early return, what is left of a time-out.
. "$(dirname "$0")/lib.sh"

cycle blocked
cycle blocked alone nanosleep
cycle blocked alone futex_timed
cycle blocked epoll_wait
cycle blocked epoll_pwait2
cycle blocked recv
for kind in semtimedop msgrcv splice; do
	cycle blocked $kind
done
cycle naps
cycle partial
done_testing
