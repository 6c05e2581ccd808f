#!/bin/bash
# A job of several members, each with a supervisor that a launcher has started: one checkpoint of all,
# of one moment, complete or absent; and restarts of all.
. "$(dirname "$0")/lib.sh"
. "$top/t/job_lib.sh"
apart -mn

# start RANKS COMMAND...: as a launcher does. pids are those of the members; output goes to out.RANK
# and err.RANK.
start() {
	local ranks=$1 rank
	shift
	pids=()
	for ((rank = 0; rank < ranks; rank++)); do
		PMI_RANK=$rank PMI_SIZE=$ranks "$@" </dev/null >>"out.$rank" 2>>"err.$rank" &
		pids+=($!)
	done
}

# start_job RANKS [COMMAND...]: until all members are ready.
start_job() {
	local ranks=$1 rank
	shift
	[ $# -gt 0 ] || set -- "$victim/lockstep"
	rm -f round.* go
	# shellcheck disable=SC2086
	start "$ranks" trecr-run -d ck ${RUN_FLAGS:-} -- "$@"
	for ((rank = 0; rank < ranks; rank++)); do
		await -t 60 -p "${pids[rank]}" "out.$rank" '^ready$' >/dev/null 2>>await.err || return
	done
}

# In a fresh directory, with something to wait for a moment at.
job_arena() {
	arena "$1"
	mkfifo pause
}

restart_job() { # RANKS: until all are in the next round
	local rank
	rm -f round.* go
	start "$1" trecr-restart --rollback-files ck
	for ((rank = 0; rank < $1; rank++)); do
		await_round "$rank" '' || return
	done
}

# ---- saved, killed, restarted ----

job_arena rounds
step=start && start_job 3 && job_checkpoint && first=$path && job_checkpoint && kill_all &&
	step="first restart" && restart_job 3 && job_checkpoint && kill_all &&
	step="second restart" && restart_job 3 && job_checkpoint && kill_all &&
	step="third restart" && restart_job 3 && step="its end" && finish_job
job_result "three members, three times saved at one moment, killed and restarted"
is "${first##*/} $(cd ck && echo ckpt-*) $(readlink ck/latest)" \
	"ckpt-000001 ckpt-000003 ckpt-000004 ckpt-000004" "the newest two checkpoints are kept"
is "$(trecr-inspect ck 2>&1 | grep -c '^checkpoint .*/rank-[012]$')" 3 "trecr-inspect shows the members"
ok "all of them are whole" quiet trecr-inspect --verify ck
like "$(trecr-restart ck 2>&1)" 'of a job of 3 ranks, which a launcher restarts: mpiexec -n 3' \
	"without a launcher they are not restarted"

start 2 trecr-restart ck
wait "${pids[@]}"
like "$(cat err.0)" 'of a job of 3 ranks, and 2 have been started' "nor with another number of ranks"
is "$(cat err.1 err.2 | grep -c 'have been started')" 0 "which one rank says"

kill_all
rm -f go ck/ranks/[12]
PMI_RANK=1 PMI_SIZE=3 trecr-restart ck/ckpt-000003 </dev/null 2>refused.1 &
PMI_RANK=2 PMI_SIZE=3 trecr-restart ck </dev/null 2>refused.2 &
await -e ck/ranks/1 2>>await.err && await -e ck/ranks/2 2>>await.err
PMI_RANK=0 PMI_SIZE=3 trecr-restart ck </dev/null 2>refused.0
isnt $? 0 "ranks of different checkpoints are not restarted"
wait
like "$(cat refused.0)" 'the ranks restart from different checkpoints: rank 0 from ckpt-000004, rank 1 from ckpt-000003' \
	"which is said"
is "$(cat refused.1 refused.2)" "" "by one rank"

# How many sockets have the name of rank 0's: one that listens, and one a connection.
sockets_of_rank_0() {
	grep -c " $sockets/$rank_0\$" /proc/net/unix
}

# Rank 2 comes when rank 0 has given up, and has not yet removed its socket: it is stopped there.
if have strace; then
	sockets=/tmp/trecr-$(id -u)
	PMI_RANK=1 PMI_SIZE=3 trecr-restart ck/ckpt-000003 </dev/null 2>refused.1 &
	# shellcheck disable=SC2016 # of the inner shell
	PMI_RANK=0 PMI_SIZE=3 bash -c 'exec strace -D -qq -o strace.out -P "$0/$$" -e inject=unlink:retval=0:signal=STOP \
		trecr-restart ck' "$sockets" </dev/null 2>refused.0 &
	rank_0=$!
	await -p $rank_0 strace.out '^--- stopped by SIGSTOP' >/dev/null 2>>await.err
	before=$(sockets_of_rank_0)
	PMI_RANK=2 PMI_SIZE=3 trecr-restart ck </dev/null 2>refused.2 &
	rank_2=$!
	while [ -e /proc/$rank_2 ] && [ "$(sockets_of_rank_0)" -le "$before" ]; do pause 0.02; done
	kill -CONT $rank_0
	wait
	is "$(grep -c 'different checkpoints' refused.0) $(cat refused.1 refused.2)" "1 " "also where one comes late"
	rm "$sockets/$rank_0"
else
	skip "a rank that comes late" "no strace"
fi

restart_job 3
PMI_RANK=1 PMI_SIZE=3 trecr-restart ck </dev/null 2>second.err
like "$(cat second.err)" 'rank 1 of the job in .* is running already' "no two ranks have one image"
finish_job
job_result "the job is not disturbed by that"

# Whoever has started a supervisor may never ask how it has ended.
unasked() {
	local i
	for ((i = 0; i < 3000; i++)); do
		grep -q '^State:.Z' "/proc/$1/status" && return 0
		pause 0.02
	done
	return 1
}
(
	arena unasked && mkfifo pause
	# shellcheck disable=SC2016 # of the inner shell
	bash -c 'PMI_RANK=0 PMI_SIZE=2 trecr-run -d ck -- sleep 600 </dev/null 2>err.0 & exec sleep 600' &
	keeper=$!
	await -t 60 -p $keeper -e ck/ranks/0 2>>await.err
	for ((i = 0; i < 3000; i++)); do
		supervisor=$(pgrep -P $keeper -x trecr-run) && pgrep -P "$supervisor" >program && break
		pause 0.02
	done
	kill -KILL "$supervisor" "$(cat program)" 2>kill.err # the program may end with its supervisor
	unasked "$supervisor" &&
		PMI_RANK=0 PMI_SIZE=2 trecr-run -d ck -- true </dev/null 2>err.1
	status=$?
	kill $keeper
	exit $status
)
result $? "a supervisor that has ended, and that nobody has asked for, has its rank no more" ||
	explain ../*unasked/err.?

mkdir aside && mv ck/ckpt-000004/rank-1 aside && cp -a ck/ckpt-000003/rank-1 ck/ckpt-000004/
for rank in 0 1 2; do
	PMI_RANK=$rank PMI_SIZE=3 trecr-restart --rollback-files ck </dev/null 2>"mixed.$rank" &
done
wait
like "$(grep -h cannot mixed.*)" '^[^:]*: cannot restart ck: rank 1: .* is of another checkpoint than the others$' \
	"a member's image that another checkpoint's was put in the place of"

job_arena ended
step=start && start_job 2 && job_checkpoint -s && step="the end" && {
	for pid in "${pids[@]}"; do await -t 60 -p "$pid" 2>>await.err || false; done
} && step=restart && restart_job 2 && step="its end" && finish_job
job_result "trecr-ckpt -s ends all members, which are restarted"

# ---- who asks ----

job_arena ask
start_job 2
path=$(trecr-ckpt -t 60 "$(program_of "${pids[1]}")" 2>>ckpt.err)
is "$path" "$PWD/ck/ckpt-000001" "the process of any member stands for the job"
trecr-ckpt -t 60 ck >one 2>>ckpt.err &
one=$!
trecr-ckpt -t 60 ck >two 2>>ckpt.err
wait $one
is "$(sort one two | sed 's/.*-//' | tr '\n' ' ')" "000002 000003 " "two requests at once are two checkpoints"
finish_job
job_result "the job is whole"
like "$(trecr-ckpt ck 2>&1)" 'there is no running job in' "when it has ended there is none"

# ---- failures ----

# The connection to rank 0 ends when it is at STAGE: rank 0 runs on.
give_up_at() { # STAGE
	rm -rf ck/ckpt-000007.tmp && mkdir ck/ckpt-000007.tmp
	perl -MSocket -e '
		my ($path, $stage) = @ARGV;
		socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die "$!";
		connect($s, sockaddr_un($path)) or die "$!";
		syswrite $s, "part=7 checkpoint stop=0 timeout_ms=0\n";
		my $text = "";
		while (sysread $s, my $c, 1) {
			$text .= $c;
			exit 0 if $text =~ /^$stage.*\n/m;
			syswrite $s, "go\n" if $c eq "\n" && $text !~ /^count [^\n]*\n\z/m;
		}
		die "no $stage: $text"' "/tmp/trecr-$(id -u)/${pids[0]}" "$1" 2>>ckpt.err &&
		await_round 0 "$(readlink round.0)" && rm -rf ck/ckpt-000007.tmp
}

job_arena faults
start_job 2 && job_checkpoint
bad=
for stage in counted frozen written stored; do
	give_up_at $stage || bad+=" $stage"
done
is "$bad" "" "members go on when who coordinates dies at any stage" || explain
kill -KILL "${pids[1]}"
wait "${pids[1]}" 2>/dev/null
job_checkpoint
like "$(tail -n 1 ckpt.err)" 'rank 1 of the 2 ranks of the job in .* is not there' \
	"a member without a supervisor is named"
is "$(cd ck && echo ckpt-*)" "ckpt-000001" "and nothing is left of the attempt"
kill_all
restart_job 2 && finish_job
job_result "the checkpoint before is whole"

# At some moment of a checkpoint.
bad=
for i in 1 2 3 4 5 6; do
	job_arena killed
	start_job 3 && job_checkpoint || bad+=" $i:start"
	trecr-ckpt -t 30 ck >second 2>>ckpt.err &
	request=$!
	pause "0.0$((i * 12 + 10))"
	kill -KILL "${pids[i % 3]}"
	wait $request
	await_round 0 "$(readlink round.0)" || bad+=" $i:stuck"
	kill_all
	restart_job 3 && finish_job || bad+=" $i:restart"
	kill_all
done
is "$bad" "" "a supervisor is killed at some moments of a checkpoint" || explain out.* err.*

job_arena refused
gcc -shared -o libmpi.so.40 -xc /dev/null 2>cc.err
if [ -e libmpi.so.40 ]; then
	RUN_FLAGS=--mpi=whole start_job 2 env LD_PRELOAD="$PWD/libmpi.so.40" "$victim/lockstep"
	job_checkpoint
	like "$(cat ckpt.err)" 'rank [01]: process [0-9]+ uses MPI \(libmpi.so.40\).* trecr-run mpiexec' \
		"messages of MPI between members are refused, and the way out is named"
	is "$(cd ck && echo ckpt-*)" "ckpt-*" "nothing is left of the attempt"
	finish_job
	job_result "and the job runs on"
else
	skip "messages of MPI" "no gcc"
fi

job_arena memory
start_job 2 "$victim/lockstep" "/dev/shm/trecr-t-$$"
rm -f "/dev/shm/trecr-t-$$"
job_checkpoint
like "$(cat ckpt.err)" "rank [01]: process [0-9]+, which is not of this rank, shares the memory /dev/shm/" \
	"memory that members share is refused"
finish_job
job_result "and the job runs on"

job_arena full
mkdir ck
if [ -n "${TRECR_APART:-}" ] && mount -t tmpfs -o size=2m,mode=700 small ck 2>mount.err; then
	start_job 2 && job_checkpoint
	head -c 4m /dev/zero >ck/filler 2>>ckpt.err
	job_checkpoint
	like "$(cat ckpt.err)" 'rank [01]: .*No space left on device' "a full disk is named"
	is "$(cd ck && echo ckpt-*)" "ckpt-000001" "nothing is left of the attempt"
	kill_all
	rm ck/filler
	restart_job 2 && finish_job
	job_result "the checkpoint before is whole"
	umount -l ck
else
	skip "a full disk" "needs root"
fi

# One that is full on the node of one rank only, as file systems with quotas may be.
job_arena full_node
faults fault.0 && faults fault.1
# shellcheck disable=SC2016 # of the inner shell
start 2 env LD_PRELOAD="$build/t/fault.so" sh -c 'TRECR_FAULT=$PWD/fault.$PMI_RANK exec trecr-run -d ck -- "$0"' "$victim/lockstep"
for rank in 0 1; do
	await -t 60 -p "${pids[rank]}" "out.$rank" '^ready$' >/dev/null 2>>await.err
done
step="first checkpoint" && job_checkpoint && faults fault.1 write 1 write && ! job_checkpoint && faults fault.1 fired &&
	faults fault.1 off
like "$(cat ckpt.err)" 'rank 1: .*No space left on device' "a disk that is full on the node of one rank is named with it"
is "$(cd ck && echo ckpt-*)" "ckpt-000001" "nothing is left of the attempt"
step="next checkpoint" && await_round 0 "$(readlink round.0)" && await_round 1 "$(readlink round.1)" && job_checkpoint &&
	kill_all && step=restart && restart_job 2 && step="its end" && finish_job
job_result "and the job goes on, and is saved when there is room"

# ---- the job's own reasons ----

# One of its ranks has begun a round after that.
job_saved() { # NUMBER: until the checkpoint is there
	await -t 60 -p "${pids[0]}" -e "ck/ckpt-00000$1" 2>>await.err
}

job_arena signals
RUN_FLAGS="--ckpt-signal USR1 --keep 9" start_job 3
kill -USR1 "${pids[@]}"
job_saved 1 && kill -USR1 "${pids[@]}" && job_saved 2
result $? "a signal to all ranks makes a checkpoint of the job, and so does the next" || explain err.*
job_checkpoint
is "$(cd ck && echo ckpt-*)" "ckpt-000001 ckpt-000002 ckpt-000003" "one each" ||
	explain err.*
is "$(told err.*)" "" "of which nothing is said"
finish_job
job_result "the job runs on"

# Each of them in less than the ten seconds in which signals to several ranks are one.
job_arena other_signals
RUN_FLAGS="--ckpt-signal USR1 --keep 9" start_job 2
kill -USR1 "${pids[1]}" && job_saved 1 && job_checkpoint
is "${path##*/}" ckpt-000002 "what trecr-ckpt asks for is not taken for a rank's signal" || explain err.*
kill -USR1 "${pids[@]}" && job_saved 3 && kill -USR1 "${pids[0]}" && job_saved 4 &&
	job_checkpoint && kill -USR1 "${pids[@]}" && job_saved 6 && kill -USR1 "${pids[1]}" && job_saved 7
result $? "what one rank gets after a signal to all is another one" || explain err.*
kill_all

job_arena meanwhile
RUN_FLAGS="--ckpt-signal USR1 --keep 9 --rate 200K" start_job 2
kill -USR1 "${pids[1]}"
until trecr-ckpt --status "${pids[1]}" 2>>ckpt.err | grep -q 'writing memory'; do
	[ -e "/proc/${pids[1]}" ] || break
done
kill -USR1 "${pids[1]}" && job_saved 2
result $? "a signal while a checkpoint is written asks for another one" || explain err.*
kill_all

job_arena one_signal
RUN_FLAGS="--ckpt-signal USR1 -v" start_job 2
kill -USR1 "${pids[1]}"
job_saved 1
result $? "a signal to one rank, too"
await -t 60 -p "${pids[1]}" err.1 'checkpoint .*/ckpt-000001$' >/dev/null 2>>await.err
result $? "which says so"
finish_job
job_result "the job runs on"

job_arena deadline
RUN_FLAGS="--ckpt-signal USR1 --deadline 1 --rate 1K" start_job 2
kill -USR1 "${pids[1]}"
await -t 60 -p "${pids[1]}" err.1 'cannot checkpoint the job: ' >line 2>>await.err
like "$(cat line)" 'memory|time' "a signal's checkpoint keeps to the deadline of the job" || explain err.*
[ ! -e ck/ckpt-000001 ] && finish_job
job_result "and the job runs on without it"

job_arena interval
RUN_FLAGS="-i 1 -v --keep 9" start_job 3
job_saved 3 && kill_all && [ "$(grep -c 'checkpoint .*/ckpt-[0-9]*$' err.0)" -ge 2 ]
result $? "an interval is one of the job" || explain err.*
is "$(cat err.[12] | grep -c 'checkpoint .*/ckpt-[0-9]*$')" 0 "kept by rank 0"
restart_job 3 && finish_job
job_result "it is restarted from the newest"

# ---- incremental ----

referenced() { # CHECKPOINT: how many members refer to earlier ones
	trecr-inspect --json "ck/$1" | grep -cE '"referenced": [1-9]'
}

for dirty in hash uffd; do
	job_arena incremental
	RUN_FLAGS="--incremental --full-every 3 --dirty $dirty" start_job 2
	for i in 1 2 3; do job_checkpoint && await_round 0 "$(readlink round.0)" || break; done
	is "${path##*/}: $(cd ck && echo ckpt-*)" "ckpt-000003: ckpt-000001 ckpt-000002 ckpt-000003" \
		"--dirty=$dirty: what is kept of a job needs what was before it" || explain err.*
	is "$(referenced ckpt-000001) $(referenced ckpt-000003)" "0 2" "each member refers to its own"
	ok "which is whole" quiet trecr-inspect --verify ck
	not_ok "what is needed is not removed" quiet trecr-inspect --prune ck/ckpt-000001
	kill_all && step=restart && restart_job 2 && step="its end" && finish_job
	job_result "it is restarted"
done

rm -f round.* go
start 2 trecr-restart --rollback-files --incremental --full-every 4 ck
await_round 0 '' && await_round 1 '' && job_checkpoint && [ "$(referenced ckpt-000004)" = 2 ]
result $? "after a restart the chain continues" || explain err.*
job_checkpoint && is "$(referenced ckpt-000005): $(cd ck && echo ckpt-*)" \
	"0: ckpt-000001 ckpt-000002 ckpt-000003 ckpt-000004 ckpt-000005" "then there is a full one"
job_checkpoint && is "$(cd ck && echo ckpt-*)" "ckpt-000005 ckpt-000006" "and the chain before it goes"
kill_all && mv ck/ckpt-000005/rank-1 gone
start 2 trecr-restart --rollback-files ck
wait "${pids[@]}"
like "$(cat err.*)" 'rank 1: cannot open parent checkpoint ckpt-000005/rank-1' "a member's that is missing is named"
mv gone ck/ckpt-000005/rank-1
restart_job 2 && finish_job
job_result "all is whole when it is back"

# ---- restarts that fail ----

job_arena broken
for rank in 0 1 2; do cp "$victim/lockstep" program.$rank; done
# shellcheck disable=SC2016
start_job 3 sh -c 'exec ./program.$PMI_RANK' && job_checkpoint && kill_all
rm -f round.* go
# What is found when the others are on their way.
mv program.2 whole
start 3 trecr-restart ck
wait "${pids[@]}"
is "$(cat err.* | grep -c cannot)" 1 "when a rank's restart fails, one rank says so" || explain err.*
like "$(cat err.0)" 'cannot restart ck: rank 2: .*program.2' "and why"
is "$(echo round.*)" "round.*" "none of them has run"
mv whole program.2
restart_job 3 && finish_job
job_result "all are restarted when it can be"

job_arena absent
start_job 2 && job_checkpoint && kill_all
rm -f round.* go
PMI_RANK=1 PMI_SIZE=2 trecr-restart ck </dev/null >>out.1 2>>err.1 &
one=$!
await -t 60 -p $one -e "/tmp/trecr-$(id -u)/$one"
kill -TERM $one
wait $one
like "$(cat err.1)" 'a signal has ended the restart' "a rank that waits for others can be ended"
restart_job 2 && finish_job
job_result "and comes another time"
done_testing
