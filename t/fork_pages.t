#!/bin/bash
# Pages that processes have in common since fork(2): a checkpoint leaves them so, and stores them once. Where each
# process has its own after a restart, and there is not enough memory for that, it is said in time.
# (Where they are in common again: inherited_pages.t.)
. "$(dirname "$0")/lib.sh"

# Five processes with 24 MiB in common, of which perl makes two copies, and $ARGV[0] MiB more.
cat >shared.pl <<'E2'
$| = 1;
$memory = "m" x (24 << 20);
$more = "m" x ($ARGV[0] << 20) if @ARGV;
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
# With a limit on address space, whatever it is, processes do not inherit memory.
inside() { (echo "$BASHPID" >"${limit%/*}/cgroup.procs" && ulimit -v "$space" && "$@"); }
launch_limited() { launch perl "$scratch/shared.pl" && echo "$sup" >sup; }

arena limited
space=100000000
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

	arena enough
	space=unlimited
	inside launch_limited
	sup=$(cat sup)
	ok "memory is enough where pages are in common again" checkpoint -s || explain
	ok "a restart there takes no more" inside restart_detached || explain
	sup=$(cat restart.out)
	now=$(own_memory)
	ok "as it is not one process's own: $now MiB are" [ "$now" -lt 60 ]
	finish
else
	skip "a cgroup with a limit of memory" "no cgroup with a limit of memory can be made here"
fi
sweep >/dev/null
[ -z "${limit:-}" ] || rmdir "${limit%/*}" 2>/dev/null

# Five processes with 12 MiB in common, of which each writes to some pages, the last one ($ARGV[0]) before it is asked
# for to be forked. Each knows what its memory was.
cat >"$scratch/common.pl" <<'E2'
use Digest::MD5 "md5_hex";
$| = 1;
open R, "/dev/urandom";
read(R, $memory, 12 << 20) == 12 << 20 or die;
sub write_some {
	substr($memory, int(rand(length($memory) - 8)), 8) = pack "Q", $_[0] + $_ for 1 .. 30;
	$sum = md5_hex($memory);
}
sub fork_one {
	pipe READY, TOLD;
	return $pid if $pid = fork and close TOLD and <READY>;
	$SIG{USR2} = "DEFAULT";
	write_some(1000 * $_[0]);
	print TOLD "ready\n";
	close TOLD;
	sleep 1 until $ended;
	exit(md5_hex($memory) ne $sum);
}
$SIG{USR1} = sub { $ended = 1 };
$SIG{USR2} = sub { $more = 1 };
push @pids, fork_one($_) for 1 .. 3;
write_some(7);
print "ready\n";
until ($ended) {
	sleep 1;
	next unless $more;
	push @pids, fork_one(4);
	$more = 0;
	print "forked\n";
}
kill "USR1", @pids;
$wrong = grep { waitpid($_, 0) != $_ || $? } @pids;
exit($wrong || md5_hex($memory) ne $sum);
E2

# number WHAT [IMAGE]: what trecr-inspect shows of it
number() {
	trecr-inspect --json "${2:-ck}" | sed -nE "s/^ *\"$1\": ([0-9]+),\$/\1/p" | head -n 1
}

# The newest checkpoint has stored less than a PART of what the processes have.
small() { # PART
	local stored all
	stored=$(number stored_bytes) && all=$(number memory_bytes)
	[ -n "$stored" ] && [ -n "$all" ] && [ "$stored" -lt $((all / $1)) ]
}

lazy=
! am_root || lazy=--lazy
for way in "" --fork "--compress=lz4 -j 3"; do
	arena common
	RUN_FLAGS="--incremental -k 1 $way"
	launch perl "$scratch/common.pl" && checkpoint || explain
	ok "checkpoint${way:+ with $way}: what is common is stored once" small 3 || explain
	kill -USR2 "$sup"
	await -t 60 -p "$sup" out '^forked$' >/dev/null 2>await.err
	checkpoint || explain
	ok "an incremental one has what a new process shares in the one before" small 20 || explain
	ok "which is kept" test -e ck/ckpt-000001
	freeze_away || explain
	ok "all is in them" quiet trecr-inspect --verify ck
	# shellcheck disable=SC2086
	restart_here $lazy && checkpoint || explain
	ok "a checkpoint after a restart is right, too" quiet trecr-inspect --verify ck
	finish
	is "$status" 0 "and each process has had its own memory" || explain
	restart_here
	finish
	is "$status" 0 "as it has from that one" || explain
	unlike "$(cat restart.err)" "MiB from now on" "which is not much more than before"
	sweep >/dev/null
	lazy=
done

# What is stored with another process is needed, and --core finds it.
arena whole
RUN_FLAGS=
launch perl "$scratch/common.pl" && checkpoint || explain
sizes=$(cd "$path" && stat -c '%s %n' [0-9]* | sort -n)
first=${sizes##* }
other=${sizes%%$'\n'*}
other=${other#* }
not_ok "the file of a process has not all of its memory" [ "$(stat -c %s "$path/$other")" -gt $((6 << 20)) ]
trecr-inspect --core core "$path" >/dev/null 2>inspect.err
ok "--core has" [ "$(stat -c %s "core.$other")" -gt $((12 << 20)) ] || explain inspect.err
finish
edit-image "$path/$first" flip $((4 << 20))
trecr-inspect --verify "$path" >verify.out 2>&1
like "$(cat verify.out)" "/$first: the block at .*checksum" "damage of it is found"
edit-image "$path/$first" flip $((4 << 20))
sweep >/dev/null

arena growth
ulimit -v 100000000
launch perl "$scratch/shared.pl" 30 && freeze_away || explain
restart_here
like "$(cat restart.err)" "takes up to [0-9]+ MiB from now on, where it may have taken [0-9]+ MiB before" \
	"a restart tells that the memory is a lot more" || explain
finish
is "$status" 0 "and is done" || explain
done_testing
