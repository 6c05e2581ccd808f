#!/bin/bash
# Threads inside system calls that wait: no EINTR, no early return, what is left of a time-out.
. "$(dirname "$0")/lib.sh"

cycle blocked
cycle blocked alone nanosleep
cycle blocked alone futex_timed
cycle blocked epoll_wait
cycle blocked epoll_pwait2
# A restart does not know sockets and System V objects yet. The refusal must not be noticed by
# the program, nor a checkpoint where there is one.
refused_and_on() {
	checkpoint && diag "the checkpoint was not refused"
	finish && [ "$status" = 0 ] && said_ok
}
scenario "blocked recv: runs on after the refusal of a checkpoint" refused_and_on \
	"$victim/blocked" recv
for kind in semtimedop msgrcv; do
	run_on blocked $kind
done
done_testing
