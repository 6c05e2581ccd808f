#!/bin/bash
# Pages that processes have in common since fork(2): a checkpoint leaves them so. After a restart each
# process has its own, and where there is not enough memory for that, it is said in time.
. "$(dirname "$0")/lib.sh"

# Five processes with 24 MiB in common, of which perl makes two copies.
cat >shared.pl <<'E2'
$| = 1;
$memory = "m" x (24 << 20);
$SIG{USR1} = sub { $ended = 1 };
for (1 .. 4) {
	next if $pid[$_] = fork;
	sleep 1 until $ended;
	exit;
}
print "ready\n";
sleep 1 until $ended;
kill "USR1", @pid[1 .. 4];
exit(grep { waitpid($_, 0) != $_ || $? } @pid[1 .. 4]);
E2

# MiB that belong to one process each, of all of the program.
own_memory() {
	local root
	root=$(program_of "$sup")
	for pid in $root $(pgrep -P "$root"); do
		cat "/proc/$pid/smaps_rollup"
	done | awk '/^Private/ { kib += $2 } END { print int(kib / 1024) }'
}

arena stays
RUN_FLAGS="--incremental" launch perl "$scratch/shared.pl"
before=$(own_memory)
for way in "" "" --fork; do
	# shellcheck disable=SC2086
	ok "a checkpoint${way:+ with $way}" checkpoint $way || explain
	now=$(own_memory)
	ok "leaves pages to all that have them: $before MiB were one process's own before, $now are" \
		[ "$now" -lt $((before + 20)) ]
done
freeze_away && restart_here
finish
is "$status" 0 "the program is whole" || explain

# A control group of ours whose memory is limited, of version 2 or 1: its file for the limit.
find_limit() {
	local at
	for at in /sys/fs/cgroup /sys/fs/cgroup/memory; do
		mkdir "$at/trecr-t-$$" && for limit in "$at/trecr-t-$$"/memory.{max,limit_in_bytes}; do
			[ -w "$limit" ] && echo 160M >"$limit" && return
		done
		rmdir "$at/trecr-t-$$"
	done 2>/dev/null
	return 1
}
inside() { (echo "$BASHPID" >"${limit%/*}/cgroup.procs" && "$@"); }
launch_limited() { launch perl "$scratch/shared.pl" && echo "$sup" >sup; }

arena limited
if find_limit && inside launch_limited; then
	sup=$(cat sup)
	not_ok "memory that would not be enough is found out before the program is ended" checkpoint -s
	like "$(cat ckpt.err)" "takes 2[0-9][0-9] MiB after a restart, as pages that they have shared \
since fork\(2\) are then each process's own, and the control group allows 160 MiB" "and told" || explain
	ok "it can be saved" checkpoint || explain
	finish
	not_ok "a restart there does not begin" inside trecr-restart ck 2>restart.err
	like "$(cat restart.err)" "restart it where there is more memory" "and tells why" || explain
	restart_here
	finish
	is "$status" 0 "where there is more it comes back" || explain
else
	skip "a cgroup with a limit of memory" "no cgroup with a limit of memory can be made here"
fi
sweep >/dev/null
[ -z "${limit:-}" ] || rmdir "${limit%/*}" 2>/dev/null
done_testing
