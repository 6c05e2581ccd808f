#!/bin/bash
# MPI programs of the standard ABI of MPI 5 (libmpi_abi.so.1), under MPICH 5's launcher and with its library in the lower half: they give what
# they give natively; jobs are saved, killed and brought back, also with the library of MPICH 4 and of Open MPI. A library
# that cannot be in the lower half stays in the program, which is told so and refused a checkpoint. MPICH5 names the
# directory of an MPICH 5 (doc/testing.md).
. "$(dirname "$0")/lib.sh"
. "$top/t/job_lib.sh"

[ -n "${MPICH5:-}" ] && [ -x "$MPICH5/bin/mpiexec" ] && [ -e "$MPICH5/lib/libmpi_abi.so.1" ] || skip_all "MPICH5 names no MPICH 5"
mkdir include && cp "$MPICH5/include/mpi_abi.h" include/mpi.h
# shellcheck disable=SC2034 # of mpi_job_lib.sh
mpi_compiler=(gcc -I"$PWD/include" -pthread -L"$MPICH5/lib" "-Wl,-rpath=$MPICH5/lib" "-Wl,--allow-shlib-undefined")
mpi_launcher=$MPICH5/bin/mpiexec
. "$top/t/mpi_job_lib.sh"

build() { # NAME...: of t/application/mpi_NAME.c
	local name
	for name; do
		# Libraries come behind what needs them.
		ok "mpi_$name is built" "${mpi_compiler[@]}" -w -O1 -o "$name" "$top/t/application/mpi_$name.c" -lmpi_abi
	done
}

lower=(trecr-run --alone --gpu=off --mpi=lower --)

# What programs of $1 ranks print, in any order.
job() { # RANKS COMMAND...
	timeout 240 "$mpi_launcher" -n "$1" "${@:2}" 2>&1 | grep -v '^trecr-run: no checkpoint will' | sort
}

alike() { # NAME COMMAND...: also with the library below
	local natively

	natively=$(job 2 "${@:2}")
	like "$natively" "done|rank" "$1 works natively"
	is "$(job 2 "${lower[@]}" "${@:2}")" "$natively" "$1 works with MPI in the lower half"
}

build calls standard
alike "calls of each family, and a profiler" ./calls
alike "constants, statuses, and what only this ABI has" ./standard

functions() { nm -D --defined-only "$1" | sed -n 's/.* [TW] \(P\?MPI_\)/\1/p' | sort -u; }
is "$(comm -23 <(functions "$MPICH5/lib/libmpi_abi.so.1") <(functions "$build/lib/trecr/stubs/libmpi_abi.so.1"))" "" \
	"all functions of the library are there"

# ---- jobs ----

mpi_compiler+=(-DTOLD_IS_SUCCESS)
build job messages lasting buffered sessions partitioned told
mpi_compiler+=(-DMPI_File_c2f=MPI_File_toint -DMPI_File_f2c=MPI_File_fromint) # as mpi.h of other ABIs has them
build files
programs=$PWD

for name in job messages lasting buffered sessions partitioned told files; do
	job_arena "$name"
	PROGRAM=$programs/$name
	three_times 2
	tell "mpi_$name, 2 ranks, three times saved, killed and brought back"
	kill_all
done

# With the library of another MPICH, and of Open MPI. The first one is MPICH 5's.
moves() { # PROGRAM LAUNCHER...
	local launcher_of
	job_arena "$1-moves"
	PROGRAM=$programs/$1
	step=start && start_job 2 &&
		for launcher_of in "${@:2}"; do
			step="a checkpoint before $launcher_of" && job_checkpoint && kill_all &&
				step="a restart by $launcher_of" && restart_by "$launcher_of" && all_in_a_round 2 || break
			launcher_of=
		done && [ -z "$launcher_of" ] && step="its end" && : >go && launched_well &&
		[ "$(cat out.* | sort | uniq -c | tr -s ' \n' ' ')" = " 2 ok " ]
	tell "mpi_$1, 2 ranks: MPICH 5$(printf ' -> %s' "${@:2}")"
	kill_all
}

restart_by() { # LAUNCHER
	rm -f out.*
	case $1 in
	openmpi)
		# shellcheck disable=SC2016 # of the inner shell
		mpirun.openmpi -n 2 sh -c 'r=$OMPI_COMM_WORLD_RANK; exec "$@" >out.$r 2>>err.$r' sh trecr-restart ck \
			</dev/null >launcher.out 2>launcher.err &
		;;
	mpich)
		mpiexec.mpich -outfile-pattern out.%r -errfile-pattern err.%r -n 2 trecr-restart "--mpi=$four" ck \
			</dev/null >launcher.out 2>launcher.err &
		;;
	*) "$mpi_launcher" -outfile-pattern out.%r -errfile-pattern err.%r -n 2 trecr-restart "--mpi=$MPICH5/lib/libmpi.so.12" ck \
		</dev/null >launcher.out 2>launcher.err & ;;
	esac
	launcher=$!
}

four=$(ldconfig -p | sed -n 's/.*libmpich\.so\.12 .*=> //p' | head -n 1)
if have mpiexec.mpich; then
	moves messages mpich "MPICH 5"
else
	skip "another MPICH" "MPICH is not installed"
fi
if have mpirun.openmpi && am_root; then
	export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=$scratch
	moves told openmpi "MPICH 5"
else
	skip "Open MPI" "Open MPI is not installed, or needs root"
fi

# ---- a library that stays in the program ----

job_arena stays
mkdir lone && cp "$MPICH5/lib/libmpi_abi.so.1" lone && ln -s "$MPICH5/lib/mpich" lone/mpich
step=start && rm -f go && ranks 2 env LD_LIBRARY_PATH="$PWD/lone" trecr-run -d ck --gpu=off -- "$programs/told" &&
	all_in_a_round 2 && step="a checkpoint" && ! job_checkpoint && step="its end" && finish_job 2 ready
tell "with a libmpi_abi.so.1 alone, a job runs as without trecr, and no checkpoint is taken"
like "$(cat err.0)" "^trecr: a libmpi_abi\.so can be in the lower half if .*: this one is in the program" "it says why"
like "$(cat ckpt.err)" "uses MPI \\(libmpi_abi\\.so\\.1\\)" "and the checkpoint names it"
kill_all
remove_topologies
done_testing
