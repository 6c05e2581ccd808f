#!/bin/bash
# Jobs in which only some ranks have trecr's stub of MPI: the others take part in no collective call but the program's own, so the
# stub must have none. Nothing of such a job can be saved, and the program is not disturbed.
. "$(dirname "$0")/lib.sh"
. "$top/t/job_lib.sh"
. "$top/t/mpi_job_lib.sh"

build_programs mpi_outsiders
program=$PWD/mpi_outsiders

# all_ready COUNT
all_ready() {
	local rank
	for ((rank = 0; rank < $1; rank++)); do
		await -t 60 -p "$launcher" "out.$rank" '^ready$' >/dev/null 2>>await.err || return
	done
}

# runs NAME REASON [ARGUMENT...]: three ranks, the second by these arguments, the others under trecr-run.
runs() {
	local name=$1 reason=$2
	shift 2
	rm -f go
	step=start && ranks 1 "${run[@]}" "$program" : -n 1 "$@" "$program" : -n 1 "${run[@]}" "$program" &&
		all_ready 3 && step=refusal && ! job_checkpoint && step="its end" && finish_job 3 ready
	tell "a job goes on whose second rank runs $name"
	like "$(cat ckpt.err)" "$reason" "and is refused a checkpoint"
	kill_all
}

missing='rank 1 of the 3 ranks of the job in .* is not there: .* without trecr-run'
arena native
runs natively "$missing" env
arena alone
runs alone "$missing" "${run[@]}" --alone --
arena elsewhere
runs "with another directory" "$missing" trecr-run -d other --gpu=off --
arena whole
runs "with the library in itself" 'process [0-9]+ (uses MPI \(libmpi|uses MPI together with ranks that did not, as it does, run)' "${run[@]}" --mpi=whole --

# The files of its members are there still.
arena former
PROGRAM=$program
step=start && ranks 3 "${run[@]}" "$program" && all_ready 3 && kill_all
result $? "all ranks of a job are killed"
runs "natively where it had a supervisor before" "$missing" env

arena unasked
run+=(env -u TRECR_SUPERVISOR)
runs "without the variable, as all do," 'process [0-9]+ could not ask its trecr-run' "${run[@]}"

# Nobody can be asked: each rank is by itself.
arena apart
run=(trecr-run --gpu=off)
: >go
step=start && ranks 3 "${run[@]}" "$program" && step="its end" && finish_job 3 ready
tell "ranks that are no job run to their end"
kill_all
done_testing
