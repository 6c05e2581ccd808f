#!/bin/bash
# Whether all ranks of a job have trecr's stub of MPI, as the stub asks it (doc/decisions/mpi.md): rank 0 decides, and all are
# told the same. Without MPI: the programs of the ranks ask by themselves.
. "$(dirname "$0")/lib.sh"
apart -mn

cat >ask <<'end'
#!/usr/bin/perl
# ask WHAT...: "begun", "all" (until it is known) and "once" ask the supervisor, and the answer is said; "wait:FIFO" waits until
# somebody writes to it; "child:WHAT,..." has another process do that. Words in front
# of these are said, too.
use strict;
use IO::Socket::UNIX;
$| = 1;

sub answer {
	my $socket = IO::Socket::UNIX->new($ENV{TRECR_SUPERVISOR}) or die "no supervisor: $!";
	print $socket "mpi $_[0]\n";
	my ($word) = split ' ', <$socket> // 'nothing';
	return $word;
}

sub perform {
	for (@_) {
		if (/^wait:(.*)/) {
			# Also to write, so that it never ends: who wrote to it last may not have closed it yet.
			open my $fifo, '+<', $1 or die;
			<$fifo>;
		} elsif (/^child:(.*)/) {
			my $child = fork // die;
			if (!$child) { perform(map { s/^/child /r } split /,/, $1); exit; }
			waitpid $child, 0;
		} else {
			my $question = (split)[-1];
			my $word = answer($question eq 'once' ? 'all' : $question);
			while ($word eq 'later' && $question eq 'all') {
				select undef, undef, undef, 0.01;
				$word = answer('all');
			}
			print "$_ $word\n";
		}
	}
}

perform(@ARGV);
end
chmod +x ask
ask=$PWD/ask

# rank RANK COMMAND...: of two, with its output in out.RANK.
rank() {
	PMI_RANK=$1 PMI_SIZE=2 "${run[@]}" "${@:2}" </dev/null >"out.$1" 2>"err.$1" &
	pids[$1]=$!
}

# begin NAME: in a directory of its own.
begin() {
	arena "$1"
	mkfifo go.0 go.1
	run=(trecr-run -d ck --gpu=off --)
	pids=()
}

# said RANK TEXT
said() {
	await -t 60 -p "${pids[$1]}" "out.$1" "^$2\$" >/dev/null 2>>await.err
}

# go RANK: what waits for go.RANK goes on; nobody may wait, where something has failed.
go() {
	# shellcheck disable=SC2016 # of the inner shell
	timeout 60 sh -c 'echo >"$0"' "go.$1"
}

# told NAME OF_0 OF_1: what the ranks have been told when they have ended.
told() {
	local rank
	for rank in 0 1; do
		await -t 60 -p "${pids[rank]}" 2>>await.err && wait "${pids[rank]}"
	done
	is "$(tr '\n' ' ' <out.0)/ $(tr '\n' ' ' <out.1)" "$2 / $3 " "$1" || explain err.* await.err
}

begin both
rank 0 "$ask" begun wait:go.0 all wait:go.0
said 0 'begun ok'
rank 1 "$ask" begun once all wait:go.1
said 1 'once later'
go 0
said 1 'all ok'
go 0
go 1
told "rank 0 decides, and the other waits for it" "begun ok all ok" "begun ok once later all ok"

begin late
rank 1 "$ask" wait:go.1 begun all
rank 0 "$ask" begun all wait:go.0
said 0 'all .*'
go 1
said 1 'all .*'
go 0
told "a rank that begins when it has been decided is told no" "begun ok all no" "begun ok all no"

begin refuses
rank 0 "$ask" wait:go.0 begun all
rank 1 "$ask" begun all wait:go.1
said 1 'all .*'
go 0
said 0 'all .*'
go 1
told "rank 0, where others have not waited for it, says no, too" "begun ok all no" "begun ok all no"

begin beside
rank 0 "$ask" begun wait:go.0 all wait:go.0
rank 1 "$ask" begun child:begun wait:go.1 all
said 0 'begun ok' && said 1 'child begun ok'
go 0
said 0 'all .*'
go 1
said 1 'all .*'
go 0
told "two processes of one rank" "begun ok all no" "begun ok child begun ok all no"

begin behind
rank 0 "$ask" begun wait:go.0 all child:begun,all wait:go.0
said 0 'begun ok'
rank 1 "$ask" begun all wait:go.1
said 1 'begun ok'
go 0
said 0 'child all .*' && said 1 'all .*'
go 0
go 1
told "a process of another job, which one of the ranks has started" "begun ok all ok child begun ok child all no" "begun ok all ok"

# shellcheck disable=SC2016 # of the inner shell
twice='f=wait:go.$PMI_RANK; "$0" begun $f all $f; "$0" "2nd begun" $f "2nd all" $f'
begin twice
rank 0 sh -c "$twice" "$ask"
rank 1 sh -c "$twice" "$ask"
for question in begun all '2nd begun' '2nd all'; do
	said 0 "$question ok" && said 1 "$question ok"
	go 0
	go 1
done
once="begun ok all ok 2nd begun ok 2nd all ok"
told "two programs of each rank, one behind the other" "$once" "$once"

begin unlike
# shellcheck disable=SC2016
rank 1 sh -c '"$0" begun; "$0" "2nd begun" wait:go.1 all' "$ask"
rank 0 "$ask" begun wait:go.0 all wait:go.0
said 0 'begun ok' && said 1 '2nd begun ok'
go 0
said 0 'all .*'
go 1
said 1 'all .*'
go 0
told "one program of a rank beside the second one of another" "begun ok all no" "begun ok 2nd begun ok all no"

begin alone
# shellcheck disable=SC2016 # of the inner shell
TRECR_SUPERVISOR=$PWD/of-another trecr-run --alone -d ck --gpu=off -- sh -c 'echo "${TRECR_SUPERVISOR-none}"' >out 2>err
is "$(cat out)" none "a program that is no member of a job knows of no supervisor of one"
done_testing
