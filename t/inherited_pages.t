#!/bin/bash
# Pages that processes have in common since fork(2) are in common again after a restart, so that it takes no more memory
# than before, and each process has its own contents. (How checkpoints store them: fork_pages.t.)
. "$(dirname "$0")/lib.sh"

for seed in 1 2 3; do
	cycle tree_pages "$seed" pss
done
RUN_FLAGS=--compress=lz4
scenario "compressed: restarted twice in a row" twice "$victim/tree_pages" 4 pss
RUN_FLAGS=--incremental
scenario "incremental checkpoints: restarted twice in a row" twice "$victim/tree_pages" 5 pss
RUN_FLAGS="--incremental --compress=zstd"
scenario "both: restarted twice in a row" twice "$victim/tree_pages" 6 pss
RUN_FLAGS="--fork --incremental"
scenario "by copies: restarted twice in a row" twice "$victim/tree_pages" 7 pss
RUN_FLAGS=

# Each has its own, with the contents that it had.
if am_root; then
	RESTART_FLAGS=--lazy
	scenario "filled later: restarted twice in a row" twice "$victim/tree_pages" 8
	RESTART_FLAGS=
else
	skip "memory that is filled later" "userfaultfd(2) is root's"
fi

# What is wrong with a block is told before any process has it.
arena damaged
launch "$victim/tree_pages" 9 && freeze_away || explain
first=$(cd "$path" && stat -c '%s %n' [0-9]* | sort -n | tail -n 1)
first=${first##* }
edit-image "$path/$first" flip $((8 << 20))
timeout -k 1 120 trecr-restart ck </dev/null >>out 2>restart.err
is $? 125 "with a damaged block in common nothing comes back"
like "$(cat restart.err)" "/$first: the block at .*checksum" "which is told" || explain
is "$(cat out)" ready "and none has run"
leaves_nothing "nothing is left"

# What only executes a program has nothing of its maker's memory, not for a moment: the kernel keeps the most that a
# process has had over execve(2). A helper of its own kind makes others of it.
cat >"$scratch/executed.pl" <<'E2'
sub large {
	my $usage = "\0" x 256;
	syscall(98, 0, $usage) and die; # getrusage
	return (unpack "q*", $usage)[4] > 32 << 10;
}
$SIG{USR1} = sub { $ended = 1 };
$child = fork;
if ($child) {
	open my $fd, ">&=", $ARGV[0] or die;
	print $fd "ready\n";
	close $fd;
}
sleep 1 until $ended;
if ($child) {
	kill "USR1", $child;
	waitpid $child, 0;
	exit 1 if $?;
}
exit large();
E2
cat >"$scratch/executes.pl" <<'E2'
$| = 1;
$^F = 1000;
$memory = "m" x (64 << 20);
sub child {
	pipe READY, TOLD;
	if (my $pid = fork) {
		close TOLD;
		return $pid if <READY>;
		die;
	}
	exec $^X, $ARGV[0], fileno TOLD if $_[0];
	$SIG{USR1} = sub { $ended = 1 };
	print TOLD "ready\n";
	close TOLD;
	sleep 1 until $ended;
	exit $memory ne "m" x (64 << 20);
}
@pids = map { child($_) } 1, 0, 1, 1, 0, 1;
$SIG{USR1} = sub { $ended = 1 };
print "ready\n";
sleep 1 until $ended;
kill "USR1", @pids;
exit(grep { waitpid($_, 0) != $_ || $? } @pids);
E2
arena executes
launch perl "$scratch/executes.pl" "$scratch/executed.pl" && freeze_away && restart_here || explain
finish
is "$status" 0 "what executes a program does not get what others inherit" || explain
sweep >/dev/null

# at MAPPED CHILD...: a program that has 70 MiB at 1 TiB after MAPPED, in common with five children, of which the first
# has something else there by CHILD. $all is more than a machine gives to one mapping, unless it gives all.
at() {
	cat >at.pl <<'E2'
$| = 1;
($mapped, $other) = @ARGV;
$at = 1 << 40;
open M, "/proc/meminfo";
/^(MemTotal|SwapTotal): *(\d+)/ and $all += $2 << 10 while <M>;
open R, "/dev/urandom";
sub mapping { syscall(9, $_[0], $_[1], $_[2], $_[3] | 0x22, -1, 0) == $_[0] or die "mmap: $!" }
sub fill { syscall(0, fileno R, $_[0], $_[1]) == $_[1] or die "read: $!" }
sub some { fill($at + ($_ << 20), 1 << 20) for 0 .. 69 }
eval $mapped;
die $@ if $@;
for $n (0 .. 5) {
	pipe READY, TOLD;
	if ($pid[$n] = fork) {
		close TOLD;
		<READY> or die;
		next;
	}
	eval $other unless $n;
	die $@ if $@;
	$SIG{USR1} = sub { $ended = 1 };
	print TOLD "ready\n";
	close TOLD;
	sleep 1 until $ended;
	exit;
}
$SIG{USR1} = sub { $ended = 1 };
print "ready\n";
sleep 1 until $ended;
kill "USR1", @pid;
exit(grep { waitpid($_, 0) != $_ || $? } @pid);
E2
	launch perl at.pl "$@" && freeze_away && restart_here
}
# KiB at 1 TiB that only process PID has.
private_at() { # PID
	awk '/^[0-9a-f]+-/ { here = /^10000000000-/ }
		here && /^Private/ { kib += $2 }
		END { print kib + 0 }' "/proc/$1/smaps"
}
growth="takes up to [0-9]+ MiB from now on"

if [ "$(cat /proc/sys/vm/overcommit_memory)" = 2 ]; then
	skip "reserved addresses" "all memory is promised here (vm.overcommit_memory)"
else
	arena reserved
	# shellcheck disable=SC2016
	at 'mapping($at, 2 * $all, 0, 0x100000); syscall(10, $at, 70 << 20, 3) and die "mprotect"; some()' \
		'mapping($at, 2 * $all, 0, 0x10)' || explain
	unlike "$(cat restart.err)" "$growth" "addresses that a process has reserved keep nothing from being in common" ||
		explain
	private=$(private_at "$(program_of "$sup")")
	ok "as it is: $private KiB are one process's own" [ "$private" -lt 8192 ]
	finish
	is "$status" 0 "and all end" || explain
	sweep >/dev/null
fi

if [ "$(cat /proc/sys/vm/overcommit_memory)" != 0 ]; then
	skip "an area that is too large" "any is mapped here (vm.overcommit_memory)"
else
	arena too_large
	# shellcheck disable=SC2016
	at 'mapping($at, 70 << 20, 3, 0x100000); some()' \
		'syscall(11, $at, 70 << 20) and die "munmap";
		$at += 66 << 20; mapping($at, $all - (32 << 20), 3, 0x10); fill($at, 4096)' || explain
	like "$(cat restart.err)" "$growth" "where what overlaps is too large to be mapped at once, it is told what it takes" ||
		explain
	finish
	is "$status" 0 "and each process has its own" || explain
	sweep >/dev/null
fi

# A process that inherits memory executes nothing: PF_FORKNOEXEC, which forked processes have, stays.
has_executed() { # PID
	local stat
	stat=$(cat "/proc/$1/stat") && stat=${stat##*) } || return
	# shellcheck disable=SC2086
	set -- $stat
	(((${7} & 0x40) == 0))
}

# locked PROTECTION: two processes with 16 MiB that both lock.
locked() {
	arena locked
	cat >locked.pl <<'E2'
$| = 1;
$at = 1 << 40;
syscall(9, $at, 16 << 20, 3, 0x100022, -1, 0) == $at or die;
open R, "/dev/urandom";
syscall(0, fileno R, $at + ($_ << 20), 1 << 20) == (1 << 20) or die for 0 .. 15;
syscall(10, $at, 16 << 20, 0 + $ARGV[0]) and die;
pipe READY, TOLD;
$pid = fork;
syscall(149, $at, 16 << 20) and die;
$SIG{USR1} = sub { $ended = 1 };
if (!$pid) {
	print TOLD "ready\n";
	close TOLD;
	sleep 1 until $ended;
	exit;
}
close TOLD;
<READY> or die;
print "ready\n";
sleep 1 until $ended;
kill "USR1", $pid;
exit(waitpid($pid, 0) != $pid || $?);
E2
	launch perl locked.pl "$1" && freeze_away && restart_here || explain
}
if am_root; then
	locked 3
	ok "memory that can be written to is not inherited where mlock(2) would make copies" \
		has_executed "$(program_of "$sup")" || explain
	finish
	is "$status" 0 "it is there" || explain
	locked 1
	not_ok "where it would not, it is" has_executed "$(program_of "$sup")" || explain
	finish
	is "$status" 0 "and there, too" || explain
else
	skip "locked memory" "a user may lock little"
fi
sweep >/dev/null

arena fifo
cp "$(command -v perl)" program
launch ./program "$scratch/executes.pl" "$scratch/executed.pl" && freeze_away || explain
rm program
mkfifo program
timeout -k 1 120 trecr-restart ck </dev/null >>out 2>restart.err
is $? 125 "a FIFO in the place of the program's file is not waited for" || explain
like "$(cat restart.err)" "/program, .* is no longer a regular file" "but told" || explain
leaves_nothing "nothing is left behind by it"

# A limit that trecr-restart is under counts what a process would have of others.
arena limited
ulimit -v 100000000
launch "$victim/tree_pages" 9 && freeze_away && restart_here || explain
like "$(cat restart.err)" "takes up to [0-9]+ MiB from now on" "with a limit of memory each has its own, which is told" ||
	explain
finish
is "$(cat out)" "ready
ok" "and is right" || explain
done_testing
