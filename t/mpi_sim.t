#!/bin/bash
# MPI programs with a simulated library in their lower halves, which does all that MPI allows and nobody expects
# (t/sim/mpi): programs made by chance are saved at any moment, killed and brought back, without an MPI
# or a launcher being installed. SEED=N makes other programs.
. "$(dirname "$0")/lib.sh"
. "$top/t/job_lib.sh"

apart -mn
random=$TRECR_BUILD/t/sim/mpi/random
seed=${SEED:-1}
diag "SEED=$seed"

# ranks COUNT COMMAND...: one process for each, with what a launcher would tell them, and nothing else in common than a
# file. Their pids are in $pids, output in out.RANK and err.RANK.
ranks() {
	local rank
	launches=$((launches + 1))
	: >"wire.$launches"
	pids=()
	for ((rank = 0; rank < $1; rank++)); do
		PMI_RANK=$rank PMI_SIZE=$1 PMI_SIM_FILE=$PWD/wire.$launches \
			"${@:2}" </dev/null >>"out.$rank" 2>>"err.$rank" &
		pids+=($!)
	done
}

random_pause() {
	pause "0.$((RANDOM % 3))$((RANDOM % 10))$((RANDOM % 10))"
}

# Three times, also where it has just come back.
three_times() { # COUNT
	local round
	step=start && ranks "$1" trecr-run -d ck --gpu=off --mpi=lower -- "$random" "$seed" && all_in_a_round "$1" &&
		for round in first second third; do
			step="$round checkpoint" && random_pause && job_checkpoint && random_pause && kill_all &&
				step="$round restart" && ranks "$1" trecr-restart ck && all_in_a_round "$1" || break
		done && [ "$round" = third ] && step="its end" && finish_job
}

run_job() { # COUNT NAME
	arena "$1"
	mkfifo pause
	launches=0
	three_times "$1"
	job_result "$2"
	kill_all
	seed=$((seed + 1))
}

for count in 2 3 4 5; do
	run_job $count "$count ranks, three times saved, killed and brought back"
done

# As many as the program has at a time, and hardly one more for a checkpoint.
export MPICH_SIM_REQUESTS=68
run_job 3 "with a library that runs out of requests"
unset MPICH_SIM_REQUESTS

# What a restart makes again may fail: errors are fatal to this program, and must not be so to the restart.
arena posted
mkfifo pause
launches=0
step=start && ranks 2 trecr-run -d ck --gpu=off --mpi=lower -- "$random" 1 posted && all_in_a_round 2 &&
	step=checkpoint && job_checkpoint && kill_all
MPICH_SIM_REQUESTS=20 ranks 2 trecr-restart ck
await -t 60 -p "${pids[0]}" 2>>await.err && await -t 60 -p "${pids[1]}" 2>>await.err
result $? "a restart ends when a library fails to make a receive again" || explain err.*
like "$(cat err.*)" 'cannot restart ck: (rank 1: )?process [0-9]+ [^ ]* MPI_Irecv gave error' "and says so"
is "$(cat err.* | grep -c 'cannot restart')" 1 "once"
kill_all
step=restart && ranks 2 trecr-restart ck && all_in_a_round 2 && step="its end" && finish_job
job_result "the image is as good as before"
kill_all

# begins_early COMMAND...: two ranks are saved before they call MPI, killed and brought back under another launcher; they
# go on when the file "awake" is there.
begins_early() {
	mkfifo pause
	launches=0
	step=start && ranks 2 trecr-run -d ck --gpu=off --mpi=lower -- "$@" &&
		await -t 60 -p "${pids[0]}" -e early.0 2>>await.err && await -t 60 -p "${pids[1]}" -e early.1 2>>await.err &&
		step=checkpoint && job_checkpoint && kill_all && rm wire.1 && step=restart && ranks 2 trecr-restart ck
}

# And then they are saved and brought back once more.
goes_on() {
	: >awake && step="a round" && all_in_a_round 2 && step="second checkpoint" && job_checkpoint && kill_all && rm wire.2 &&
		step="second restart" && ranks 2 trecr-restart ck && all_in_a_round 2 && step="its end" && finish_job
}

# Its launcher is that of the restart, although it has not called MPI before.
arena early
begins_early "$random" 1 early && goes_on
job_result "ranks that were saved before they call MPI belong to the launcher of the restart"
kill_all

# So is that of a program that is executed behind the restart, by a shell whose variables are the former launcher's.
arena executed
# shellcheck disable=SC2016 # of the inner shell
shell=': >"early.$PMI_RANK" && while [ ! -e awake ]; do sleep 0.02; done && "$0" 1'
begins_early sh -c "$shell" "$random" && goes_on
job_result "programs that a rank executes behind a restart belong to the launcher of the restart"
kill_all

# Supervisors of other programs of the user may be stopped: none of the eight is waited for by itself, which would be 10 s
# for each.
arena stopped
others=()
stop_others() {
	local i
	for i in 1 2 3 4 5 6 7 8; do
		trecr-run -d "other.$i" --gpu=off -- sh -c ': >"began.$0" && exec sleep 600' "$i" &
		others+=($!)
		await -t 60 -p $! -e "began.$i" 2>>await.err || return 1
	done
	kill -STOP "${others[@]}"
}
begins_early sh -c "$shell" "$random" &&
	step=others && stop_others && began=$SECONDS && : >awake && step="a round" && all_in_a_round 2 &&
	step="without waiting" && [ $((SECONDS - began)) -lt 80 ] && step="its end" && finish_job
job_result "programs that are executed behind a restart do not wait for supervisors that are stopped"
kill -KILL "${others[@]}"
kill_all >/dev/null 2>&1
done_testing
