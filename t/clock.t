#!/bin/bash
# trecr-restart --freeze-clock: the program's monotonic clocks go on from the checkpoint. The
# programs begin in a time namespace whose clocks are far from the machine's, so that nothing
# has to wait until these differ.
. "$(dirname "$0")/lib.sh"

am_root && as= || as='-U -c'
# shellcheck disable=SC2086
ahead() {
	unshare $as -T --monotonic "$1" --boottime "$1" "${@:2}"
}
ahead 100000 true 2>/dev/null || skip_all "no time namespaces here"
uptime=$(cut -d. -f1 /proc/uptime)
# The unshare of util-linux 2.39 cannot read a negative number.
behind=$((-uptime / 2))
ahead $behind true 2>/dev/null || behind=

# launch_ahead SECONDS COMMAND...
launch_ahead() {
	rm -f out
	# Its child is the first in the namespace.
	ahead "$1" bash -c 'echo $$ >sup; exec "$@"' - trecr-run -d ck -- "${@:2}" \
		</dev/null >out 2>err &
	await -t 60 -p $! out '^ready$' >/dev/null 2>await.err && sup=$(cat sup)
}

# frozen SHIFT [SECOND...]: twice, the second time with these options.
frozen() {
	launch_ahead "$1" "$victim/clock" && step="first checkpoint" &&
		freeze_away && step="first restart" &&
		restart_detached --freeze-clock && step="a checkpoint of it" &&
		freeze_away && step="second restart" &&
		restart_here --freeze-clock && step="going on" &&
		finish && step="its own checks" &&
		[ "$status" = 0 ] && said_ok && step="leaving nothing behind" &&
		sweep 5
}

for shift in 100000 $behind; do
	arena shift
	step=start
	frozen $shift
	result $? "clocks $shift s from the machine's go on over two restarts" || {
		diag "failed at: $step"
		explain
	}
	sweep >/dev/null
done

# Without the option they are the machine's.
if [ -n "$behind" ]; then
	arena plain
	launch_ahead $behind "$victim/clock" && freeze_away && restart_here && finish
	is "${status:-}" 1 "without the option"
	like "$(cat out)" 'clock 0 has leapt' "the clock is the machine's" || explain
	sweep >/dev/null
else
	skip "without the option" "unshare takes no clock that is behind"
fi

# From a time namespace of its own back to the machine's: timers keep what was left.
arena back
launch "$victim/timerfd" && freeze_away && restart_detached --freeze-clock && freeze_away &&
	restart_here && finish
is "${status:-}" 0 "timers survive into a time namespace and out of it" || explain
sweep >/dev/null

# All of what blocks, and POSIX timers, in a time namespace.
RESTART_FLAGS=--freeze-clock
for v in posix_timers itimers timerfd vdso tree_clones; do
	scenario "$v: restarted twice with frozen clocks" twice "$victim/$v"
done
# Not what waits for a time of day, which goes on meanwhile.
scenario "blocked calls: restarted twice with frozen clocks" twice "$victim/blocked" nanosleep \
	clock_nanosleep clock_nanosleep_abs poll ppoll select pselect futex_timed futex_until \
	sigtimedwait epoll_wait epoll_pwait2 recv semtimedop msgrcv
done_testing
