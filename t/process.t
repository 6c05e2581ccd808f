#!/bin/bash
# What belongs to the process as a whole.
. "$(dirname "$0")/lib.sh"

cycle process
cycle credentials
cycle jail
cycle settings
cycle membarrier
cycle seccomp
cycle plugins "$victim/plugin.so"

# Containers put all of their processes under a filter, trecr included. It does not go with the
# program.
arena confined
confine trecr-run -d ck -- "$victim/process" </dev/null >out 2>err &
sup=$!
if await -t 30 -p $sup out '^ready$' >/dev/null 2>await.err; then
	ok "a program under trecr's own filter can be saved" checkpoint || explain
	freeze_away
	restart_here
	like "$(cat "/proc/$(program_of "$sup")/status")" $'Seccomp:\t0' "and comes back without"
	finish
	is "$status" 0 "and whole" || explain
else
	skip "a program under trecr's own filter" "no seccomp filters"
fi
sweep >/dev/null
done_testing
