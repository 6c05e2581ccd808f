#!/bin/bash
# After a reboot and on other machines the program's monotonic clocks continue from the checkpoint, or
# what waits for a time of theirs is moved. The programs begin in a time namespace whose clocks are
# far from the machine's, so that nothing has to wait until these differ.
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
	# shellcheck disable=SC2086
	ahead "$1" ${AS:-} bash -c 'echo $$ >sup; exec "$@"' - trecr-run -d ck -- "${@:2}" \
		</dev/null >out 2>err &
	await -t 60 -p $! out '^ready$' >/dev/null 2>await.err && sup=$(cat sup)
}

# ahead_twice SHIFT VICTIM [OPTION...]: the restarts with these options
ahead_twice() {
	local options=("${@:3}")
	launch_ahead "$1" "$victim/$2" && step="first checkpoint" &&
		freeze_away && step="first restart" &&
		restart_detached "${options[@]}" && step="a checkpoint of it" &&
		freeze_away && step="second restart" &&
		restart_here "${options[@]}" && step="running on" &&
		finish && step="its own checks" &&
		[ "$status" = 0 ] && said_ok && step="leaving nothing behind" &&
		sweep 60
}

# shifted NAME SHIFT VICTIM [OPTION...]
shifted() {
	arena shift
	step=start
	ahead_twice "${@:2}"
	result $? "$1" || {
		diag "failed at: $step"
		explain
	}
	sweep >/dev/null
}

for shift in 100000 $behind; do
	shifted "clocks $shift s from the machine's go on over two restarts" $shift clock
	shifted "so does what waits for them" $shift deadlines
	shifted "as asked for" $shift clock --freeze-clock
done

# Without it they are the machine's.
if [ -n "$behind" ]; then
	arena plain
	launch_ahead $behind "$victim/clock" && freeze_away &&
		restart_here --freeze-clock=never && finish
	is "${status:-}" 1 "with --freeze-clock=never"
	like "$(cat out)" 'clock 0 has leapt' "the clock is the machine's" || explain
	sweep >/dev/null
else
	skip "with --freeze-clock=never" "unshare takes no clock that is behind"
fi

# ---- another boot, whose clocks are just where they were ----

clocks_of() { # PID
	readlink "/proc/$(program_of "$1")/ns/time"
}

if am_root && unshare -m true 2>/dev/null; then
	arena boot
	launch "$victim/deadlines" && freeze_away
	sed 'y/0123456789abcdef/123456789abcdef0/' /proc/sys/kernel/random/boot_id >boot_id
	cat >other-boot <<-'END'
		mount --bind boot_id /proc/sys/kernel/random/boot_id && exec trecr-restart "$@"
	END
	unshare -m bash other-boot -D ck </dev/null >restart.out 2>restart.err && sup=$(cat restart.out)
	is "$(cat restart.err)" "trecr-restart: this is another machine, or it has been rebooted: the program's monotonic clocks continue from the checkpoint" \
		"another boot is known by its id, and told"
	isnt "$(clocks_of "$sup")" "$(readlink /proc/self/ns/time)" "the program has clocks of its own"
	is "$(readlink "/proc/$(program_of "$sup")/ns/pid")" "$(readlink /proc/self/ns/pid)" \
		"but no other namespace"
	freeze_away && restart_here
	like "$(cat restart.err)" "rebooted.*rebooted" "and so it has on the machine as it was"
	finish
	is "$status $(cat out)" "0 ready
ok" "it comes to its end" || explain
	sweep >/dev/null

	arena same
	launch "$victim/idle" && freeze_away && restart_detached
	is "$(cat restart.err)" "" "on the same boot nothing is said"
	is "$(clocks_of "$sup")" "$(readlink /proc/self/ns/time)" "and clocks are the machine's"
	sweep >/dev/null
else
	skip "another boot" "needs root and mount namespaces"
fi

# ---- where no time namespace can be had ----

no_time="setpriv --bounding-set=-sys_time --inh-caps=-sys_time --"
# A time namespace inside of one: the supervisor's own clocks are not the machine's.
if am_root && [ "$($no_time bash -c 'unshare -T --monotonic 1 true' 2>&1 >/dev/null)" ]; then
	mkdir "$scratch/bin"
	cat >"$scratch/bin/trecr-restart" <<-END
		#!/bin/sh
		exec $no_time $build/trecr-restart "\$@"
	END
	chmod +x "$scratch/bin/trecr-restart"
	with_time=$PATH
	PATH=$scratch/bin:$PATH
	AS=$no_time
	for shift in 100000 $behind; do
		shifted "without a time namespace, times that are waited for are moved ($shift s)" \
			$shift deadlines
		like "$(cat restart.err)" "the program's clocks jump, as no time namespace can be made here \(Operation not permitted\): CLOCK_MONOTONIC [0-9]+ s (back|forward), " \
			"which is told"
	done
	arena refused
	launch_ahead 100000 "$victim/idle" && freeze_away
	not_ok "as asked for, that is an error" quiet restart_here --freeze-clock=always
	like "$(cat restart.err)" "cannot let the clocks continue from the checkpoint: Operation not permitted" "with its reason"
	sweep >/dev/null
	AS= PATH=$with_time
else
	skip "without a time namespace" "needs root and setpriv"
fi

# ---- as an ordinary user ----

user=$as_nobody
if am_root && $user test -x "$build/trecr-run" && $user unshare -U -T true 2>/dev/null; then
	chmod 711 "$scratch"
	mkdir "$scratch/bin-user"
	for t in trecr-restart trecr-ckpt; do
		printf '#!/bin/sh\nexec %s %s "$@"\n' "$user" "$build/$t" >"$scratch/bin-user/$t"
	done
	chmod +x "$scratch"/bin-user/*
	with_root=$PATH
	PATH=$scratch/bin-user:$PATH
	arena user
	chmod 777 .
	umask 000
	AS=$user
	step=start
	ahead_twice 100000 deadlines
	result $? "as an ordinary user" || {
		diag "failed at: $step"
		explain
	}
	like "$(cat restart.err)" "brought back in a pid namespace of its own: its clocks continue" \
		"in a user namespace"
	sweep >/dev/null
	umask 022
	AS= PATH=$with_root
else
	skip "as an ordinary user" "needs root, setpriv and user namespaces"
fi

# ---- in time namespaces, and out of them ----

# From a time namespace of its own back to the machine's: timers keep what was left.
arena back
launch "$victim/timerfd" && freeze_away && restart_detached --freeze-clock && freeze_away &&
	restart_here --freeze-clock=never && finish
is "${status:-}" 0 "timers survive into a time namespace and out of it" || explain
sweep >/dev/null

# All of what blocks, and POSIX timers, in a time namespace.
RESTART_FLAGS=--freeze-clock
for v in posix_timers itimers timerfd vdso tree_clones; do
	scenario "$v: restarted twice with frozen clocks" twice "$victim/$v"
done
# But not waits for a time of day, which passes meanwhile.
scenario "blocked calls: restarted twice with frozen clocks" twice "$victim/blocked" nanosleep \
	clock_nanosleep clock_nanosleep_abs poll ppoll select pselect futex_timed futex_until \
	sigtimedwait epoll_wait epoll_pwait2 recv semtimedop msgrcv
done_testing
