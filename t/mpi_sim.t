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

all_in_a_round() { # COUNT
	local rank
	rm -f round.*
	for ((rank = 0; rank < $1; rank++)); do
		await_round "$rank" '' || return
	done
}

random_pause() {
	pause "0.$((RANDOM % 3))$((RANDOM % 10))$((RANDOM % 10))"
}

kill_all() {
	sweep >/dev/null || true
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
done_testing
