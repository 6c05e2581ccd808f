#!/bin/bash
# Threads inside system calls that wait: no EINTR, no early return, what is left of a time-out.
. "$(dirname "$0")/lib.sh"

cycle blocked
cycle blocked alone nanosleep
cycle blocked alone futex_timed
cycle blocked epoll_wait
cycle blocked epoll_pwait2
# A restart does not know these descriptors and objects yet; the program itself must not
# notice a checkpoint. Where the checkpoint is refused, the refusal must not be noticed.
for kind in recv; do
	refused_and_on() {
		checkpoint && diag "$kind: the checkpoint was not refused"
		finish && [ "$status" = 0 ] && said_ok
	}
	scenario "blocked $kind: runs on after a checkpoint, or after its refusal" refused_and_on \
		"$victim/blocked" $kind
done
for kind in semtimedop msgrcv; do
	run_on blocked $kind
done
done_testing
