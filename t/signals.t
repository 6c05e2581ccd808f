#!/bin/bash
# Signals and timers: what is set, what waits, what is left, and frames of handlers.
. "$(dirname "$0")/lib.sh"

for v in dispositions pending itimers "itimers fire" itimer_pending posix_timers timerfd in_handler; do
	# shellcheck disable=SC2086
	cycle $v
done
done_testing
