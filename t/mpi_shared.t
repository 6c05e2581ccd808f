#!/bin/bash
# Memory that ranks of MPI share in windows (MPI_Win_allocate_shared): saved in parts, one in each rank's image, and
# shared again by the ranks that are brought back.
. "$(dirname "$0")/lib.sh"
. "$top/t/job_lib.sh"
. "$top/t/mpi_job_lib.sh"

if ! am_root; then
	skip "ranks that share memory" "needs root"
	done_testing
	exit
fi

build_programs mpi_shared
# shellcheck disable=SC2034 # of mpi_job_lib.sh
PROGRAM=$PWD/mpi_shared

for count in 2 5; do
	job_arena "$count"
	three_times $count
	tell "$count ranks that share memory, three times saved, killed and brought back"
	is "$(find /dev/shm -name 'trecr-window-*')" "" "and leave no names"
	kill_all
done
done_testing
