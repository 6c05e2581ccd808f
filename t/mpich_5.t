#!/bin/bash
# MPI programs with MPICH 5's library in the lower half: they give what they give natively, and leave its launcher as it
# wants; jobs are saved, killed and brought back. A program that was built with MPICH 4 moves to MPICH 5 and back. MPICH5
# names the directory of an MPICH 5 (doc/testing.md).
. "$(dirname "$0")/lib.sh"
. "$top/t/job_lib.sh"

[ -n "${MPICH5:-}" ] && [ -x "$MPICH5/bin/mpiexec" ] && [ -e "$MPICH5/lib/libmpi.so.12" ] || skip_all "MPICH5 names no MPICH 5"
# shellcheck disable=SC2034 # of mpi_job_lib.sh
mpi_compiler=(gcc -I"$MPICH5/include" -pthread -DTOLD_IS_SUCCESS "-Wl,-rpath=$MPICH5/lib" "-Wl,--allow-shlib-undefined")
mpi_launcher=$MPICH5/bin/mpiexec
. "$top/t/mpi_job_lib.sh"

build() { # NAME...: of t/application/mpi_NAME.c
	local name
	for name; do
		# Libraries come behind what needs them.
		ok "mpi_$name is built" "${mpi_compiler[@]}" -w -O1 -o "$name" "$top/t/application/mpi_$name.c" "$MPICH5/lib/libmpi.so.12"
	done
}

build calls job messages lasting files sessions
programs=$PWD
lower=(trecr-run --alone --gpu=off --mpi=lower --)

# Its launcher kills all ranks when one of them ends without a word, which shows when the other one is slower.
told=
for i in $(sizes 8 2); do
	for _ in $(seq "$i"); do
		timeout 240 "$mpi_launcher" -n 2 "${lower[@]}" ./calls >out 2>&1 || told+=" status $?"
		[ "$(grep -c ': done, 2 seen$' out)" = 2 ] || told+=" $(tail -n 1 out)"
	done
done
is "$told" "" "calls of each family work, also when an error handler returns, and the launcher is told of the end"

build late_finalize
for how in atexit destructor; do
	timeout 60 "$mpi_launcher" -n 2 "${lower[@]}" ./late_finalize $how >out 2>&1
	is "$? $(grep -c '^done$' out)" "0 2" "MPI_Finalize is called at the exit: $how"
done

build failing_probes
for level in 0 3; do # MPI_THREAD_SINGLE, MPI_THREAD_MULTIPLE
	timeout 60 "$mpi_launcher" -n 1 "${lower[@]}" ./failing_probes $level >out 2>err
	is "$? $(paste -sd ' ' out)" "0 told of 2 failed: 0" "probes that fail return: level of threads $level"
done

for name in job messages lasting files sessions; do
	job_arena "$name"
	PROGRAM=$programs/$name
	three_times 2
	tell "mpi_$name, 2 ranks, three times saved, killed and brought back"
	kill_all
done

# ---- from MPICH 4, and back ----

if ! have mpicc.mpich || ! have mpiexec.mpich; then
	skip "another MPICH" "MPICH is not installed"
	done_testing
	exit
fi

restart_with() { # LAUNCHER LIBRARY
	mpi_launcher=$1
	rm -f out.*
	ranks 2 trecr-restart "--mpi=$2" ck && all_in_a_round 2
}

four=$(ldconfig -p | sed -n 's/.*libmpich\.so\.12 .*=> //p' | head -n 1)
for name in messages lasting; do
	job_arena "$name-moves"
	ok "mpi_$name is built with MPICH 4" mpicc.mpich -w -O1 -o "$name" "$top/t/application/mpi_$name.c" -pthread
	PROGRAM=$PWD/$name mpi_launcher=mpiexec.mpich
	step=start && start_job 2 && step="a checkpoint" && job_checkpoint && kill_all &&
		step="a restart with MPICH 5" && restart_with "$MPICH5/bin/mpiexec" "$MPICH5/lib/libmpi.so.12" &&
		step="which is below" && grep -q "$MPICH5/lib/libmpi.so.12" "/proc/$(program_of "$(supervisor_of 0)")/maps" &&
		step="a second checkpoint" && job_checkpoint && kill_all &&
		step="a restart with MPICH 4" && restart_with mpiexec.mpich "$four" && step="its end" && finish_job 2
	tell "mpi_$name, 2 ranks: MPICH 4 -> MPICH 5 -> MPICH 4"
	kill_all
done
remove_topologies
done_testing
