#!/bin/bash
# What goes wrong while a job of MPI ranks with windows is being saved: who coordinates is killed, operations take too long. The ranks
# go on, and later checkpoints are good.
. "$(dirname "$0")/lib.sh"
. "$top/t/job_lib.sh"
. "$top/t/mpi_job_lib.sh"

build_programs mpi_windows
windows=$PWD/mpi_windows
PROGRAM=$windows

# Coordinates a checkpoint of two ranks that sleep, as trecr-ckpt does, until each is told to take messages; then it gives up. The order
# goes to rank 0, and with BOTH to rank 1, each with so much time. Prints what they answer.
cat >coordinator.pl <<'EOP'
use strict;
use Socket;
my ($round, @ranks) = @ARGV; # PATH:DRAIN_MS, each
my @links;
for (@ranks) {
	my ($path, $drain_ms) = /(.*):(.*)/;
	socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die "$!";
	connect($s, sockaddr_un($path)) or die "$path: $!";
	push @links, $s;
	syswrite $s, "part=7 checkpoint stop=0 timeout_ms=0 drain_ms=" . ($drain_ms || 1000 * ($ENV{TEST_SLOW} || 1)) . "\n";
}
sub hear {
	my ($s, $text) = ($_[0], "");
	while (sysread $s, my $c, 1) {
		return $text if $c eq "\n";
		$text .= $c;
	}
	die "connection lost behind '$text'\n";
}
sub await { # STAGE: of all; what each has said before
	my $stage = shift;
	return map {
		my ($s, @lines) = ($_);
		while ((my $line = hear $s) !~ /^$stage/) {
			die "$line\n" if $line =~ /^(error|again)/;
			push @lines, $line;
		}
		\@lines
	} @links;
}
sub say_all { syswrite $_, "$_[0]\n" for @links }

# They stand still: what one has entered all have.
my @counts = await "counted";
for my $i (0 .. $#links) {
	for (@{$counts[$i]}) {
		syswrite $links[$i], "limit $1 $2\n" if /^count (\d+) (\d+)/;
	}
}
say_all "look";
await "counted";
say_all "go";
await "frozen";
say_all "go";
await "sent";
say_all "settle";
await "drained";
my @told = grep { $ranks[$_] !~ /:$/ } 0 .. $#links;
syswrite $links[$_], "take $round\n" for @told;
print "rank $_: ", hear($links[$_]), "\n" for reverse @told;
EOP
coordinator=$PWD/coordinator.pl

socket_of() { # RANK
	echo "/tmp/trecr-$(id -u)/$(supervisor_of "$1")"
}

# give_up ROUND DRAIN_MS-OF-RANK-0 [DRAIN_MS-OF-RANK-1]
give_up() {
	local r
	rm -rf ck/ckpt-000007.tmp && mkdir -p ck/ckpt-000007.tmp &&
		timeout 120 perl "$coordinator" "$1" "$(socket_of 0):$2" "$(socket_of 1):${3:-}" >answers 2>>ckpt.err
	r=$?
	rm -rf ck/ckpt-000007.tmp
	return $r
}

# ---- who coordinates is killed ----

# One of the ranks of a window is told to complete its operations, and the other is not any more.
job_arena alone
step=start && ranks 2 "${run[@]}" -- "$windows" begun && all_asleep 2 && step="giving up" && give_up 1 $((500 * slow))
like "$(cat answers)" '^rank 0: error process [0-9]+ waits for other ranks to complete operations on MPI windows' \
	"a rank that is alone in completing operations on windows gives up" || explain
step=checkpoint && job_checkpoint && kill_all &&
	step=restart && ranks 2 trecr-restart ck && : >awake && step="its end" && all_in_a_round 2 && finish_job 2 ready
tell "and the next checkpoint of all is good"
kill_all

# The same, and the window is freed before any other checkpoint: what rank 1 was to be told is in no communicator that is made then.
job_arena freed
step=start && ranks 2 "${run[@]}" -- "$windows" begun && all_asleep 2 && step="giving up" && give_up 1 $((500 * slow)) &&
	step="its end" && : >awake && all_in_a_round 2 && finish_job 2 ready
tell "nothing of it is left when the window is freed"
kill_all

# ---- operations that take too long ----

# Rank 1 gives up when they have begun to complete them, and sleeps on; rank 0's wait for it. With more of them, if they were complete
# before that.
too_long='^rank 0: error operations of process [0-9]+ on MPI windows are not complete in time'
tries="60:200 60:500 200:1000 200:2000 600:4000 600:8000"
complete_too_late() { # ARENA: from the try on that was good the last time
	for try in $tries; do
		local times=${try%:*} ms=${try#*:}
		job_arena "$1"
		step=start && ranks 2 "${run[@]}" -- "$windows" begun "$times" && all_asleep 2 && step="giving up" &&
			give_up 1 $((3000 + 2 * ms)) "$ms"
		grep -qE "$too_long" answers && tries="$try ${tries#*"$try"}" && return
		kill_all
	done
	return 1
}
complete_too_late slow
like "$(tail -n 1 answers)" "$too_long" "operations on windows that take too long let the checkpoint fail" || explain
# They may be complete by now.
: >ckpt.err
job_checkpoint || grep -q 'rank 0: the lower half of process [0-9]* is still at work for an earlier checkpoint' ckpt.err
result $? "while they last, the next one is refused for that" || explain
step="going on" && : >awake && all_in_a_round 2 && step=checkpoint && job_checkpoint && kill_all &&
	step=restart && restart_job 2 && step="its end" && finish_job 2
tell "the program waits for them, and is saved then"
kill_all

complete_too_late aborting && : >abort && step="its end" && await -t 60 -p "$launcher" 2>>await.err
tell "a program that aborts does not wait for them"
kill_all

# ---- a rank that looks for a change again and again ----

# By requests, which are complete each time. What it looks for comes when the others have been let on.
job_arena polling
step=start && ranks 3 "${run[@]}" -- "$windows" polling && all_asleep 3
job_checkpoint &
request=$!
pause 1
: >awake
step=checkpoint && wait $request && step="going on" && all_in_a_round 3 && kill_all &&
	step=restart && restart_job 3 && step="its end" && : >go && launched_well && [ "$(grep -hxc ok out.*)" = "1
1
1" ]
tell "a rank that looks at a window by requests lets others on"
kill_all
done_testing
