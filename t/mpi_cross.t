#!/bin/bash
# MPI programs that change their library at a restart: saved under MPICH's launcher and brought back by Open MPI's, and
# the other way round, several times in a row. What the program was told stays true. What the other library cannot be
# given is refused, and comes back with its own.
. "$(dirname "$0")/lib.sh"
. "$top/t/job_lib.sh"

have mpicc.mpich && have mpiexec.mpich || skip_all "MPICH is not installed"
have mpicc.openmpi && have mpirun.openmpi || skip_all "Open MPI is not installed"
apart -mn
if [ -n "${TRECR_APART:-}" ]; then
	loopback_up
	mount -t tmpfs tmpfs /dev/shm # where libraries leave files when they are killed
fi
# As many ranks as are asked for, on however few processors. Its sockets have names of limited length.
export OMPI_MCA_rmaps_base_oversubscribe=1 TMPDIR=$scratch
# Of a killed job its shared memory is left: for a user, who has no /dev/shm apart, where the test removes it.
[ -n "${TRECR_APART:-}" ] || export OMPI_MCA_btl_vader_backing_directory=$scratch
! am_root || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

build() { # LIBRARY NAME...: of t/application/mpi_NAME.c, as NAME.LIBRARY
	local name
	for name in "${@:2}"; do
		ok "mpi_$name is built with $1" "mpicc.$1" -w -O1 -o "$name.$1" \
			"$top/t/application/mpi_$name.c" -pthread
	done
}

build mpich alone answers told messages buffered partitioned lasting windows files sessions
build openmpi alone told lasting
programs=$PWD
fortran=
! have mpifort.openmpi || ! mpifort.openmpi -w -ffree-line-length-none -DBY_F08 -J. -o fortran_job.openmpi \
	"$top/t/application/mpi_fortran_job.F90" 2>compiler.err || fortran=$PWD/fortran_job.openmpi

# ---- one rank, without a launcher: the user says which library ----

RUN_FLAGS="--close-fds --gpu=off --mpi=lower"

end_here() {
	local program
	program=$(program_of "$sup") && kill -KILL "$sup" "$program"
	wait "$sup" 2>/dev/null
	true
}

# What maps the library of this kind.
is_below() { # LIBRARY
	local file=libmpich.so
	[ "$1" = mpich ] || file=libmpi.so.40
	grep -q "/$file" "/proc/$(program_of "$sup")/maps"
}

alone_with() { # of $libraries
	local library
	for library in $libraries; do
		step="a checkpoint before $library" && checkpoint && end_here &&
			step="a restart with $library" && restart_here "--mpi=$library" && is_below "$library" || return
	done
	step="its end" && finish && [ "$status" = 0 ] && said_ok && step="leaving nothing behind" && sweep 60
}

libraries="openmpi mpich"
scenario "a program of MPICH, with Open MPI's library and MPICH's again" alone_with "$programs/alone.mpich"
libraries="mpich openmpi"
scenario "what Open MPI's library cannot answer is said right, or is an error" alone_with "$programs/answers.mpich"
libraries="mpich openmpi"
scenario "a program of Open MPI, with MPICH's library and Open MPI's again" alone_with "$programs/alone.openmpi"

# The library of the restart decides, although the program had not initialised its own, and so do the variables: with what
# the program still has of the former ones Open MPI's would not come up.
initialised_behind() {
	step="a checkpoint" && checkpoint && end_here &&
		step="a restart" && restart_here --mpi=openmpi && : >go &&
		step="a file open" && await -t 60 -p "$sup" -e open 2>>await.err &&
		step="a refusal" && ! checkpoint && grep -q "has called MPI_File_open" ckpt.err &&
		step="its end" && finish && [ "$status" = 0 ] && said_ok
}
scenario "a program that initialises MPI behind the restart: its file is Open MPI's own" \
	initialised_behind env OMPI_MCA_pml=former "$programs/answers.mpich" early

# ---- several, by the launchers ----

# ranks LIBRARY COUNT COMMAND...: started by its launcher, whose pid is $launcher; output goes to out.RANK and err.RANK.
ranks() {
	rm -f out.*
	if [ "$1" = mpich ]; then
		mpiexec.mpich -outfile-pattern out.%r -errfile-pattern err.%r -n "${@:2}" \
			</dev/null >launcher.out 2>launcher.err &
	else
		# shellcheck disable=SC2016 # of the inner shell
		mpirun.openmpi -n "$2" sh -c 'r=$OMPI_COMM_WORLD_RANK; exec "$@" >out.$r 2>>err.$r' sh "${@:3}" \
			</dev/null >launcher.out 2>launcher.err &
	fi
	launcher=$!
}

start_job() { # LIBRARY COUNT PROGRAM
	rm -f go
	ranks "$1" "$2" trecr-run -d ck --gpu=off --mpi=lower -- "$3" && all_in_a_round "$2"
}

restart_job() { # LIBRARY COUNT
	ranks "$1" "$2" trecr-restart ck && all_in_a_round "$2"
}

finish_job() { # COUNT
	: >go
	launched_well && [ "$(cat out.* | sort | uniq -c | tr -s ' \n' ' ')" = " $1 ok " ]
}

# The first library is the one it was built with.
moves() { # COUNT PROGRAM LIBRARY...
	local library name=${2##*/}
	job_arena "$name-$1"
	step=start && start_job "${name#*.}" "$1" "$2" &&
		for library in "${@:3}"; do
			step="a checkpoint before $library" && job_checkpoint && step="going on" && all_in_a_round "$1" &&
				kill_all && step="a restart with $library" && restart_job "$library" "$1" || break
			library=
		done && [ -z "$library" ] && step="its end" && finish_job "$1"
	tell "mpi_$name, $1 ranks: $(echo "${name#*.}" "${@:3}" | sed 's/ / -> /g')"
	kill_all
}

moves 2 "$programs/told.mpich" openmpi mpich
moves 3 "$programs/messages.mpich" openmpi
moves 2 "$programs/buffered.mpich" openmpi mpich
moves 2 "$programs/partitioned.mpich" openmpi mpich
moves 2 "$programs/lasting.mpich" openmpi
moves 2 "$programs/lasting.openmpi" mpich
if [ -n "$fortran" ]; then
	moves 2 "$fortran" mpich openmpi
	moves 3 "$fortran" mpich
else
	skip "a program in Fortran" "no compiler"
fi

# ---- what Open MPI's library cannot be given ----

for program in windows files sessions; do
	job_arena $program
	step=start && start_job mpich 2 "$programs/$program.mpich" && step=checkpoint && job_checkpoint && kill_all
	ranks openmpi 2 trecr-restart ck
	await -t 120 -p $launcher 2>>await.err
	case $program in
	windows) what="a window" ;;
	files) what="a file open" ;;
	*) what="a session" ;;
	esac
	like "$(cat err.*)" "cannot restart ck: .*it has $what .*Open MPI.*: restart it under MPICH's launcher" \
		"a restart of mpi_$program with Open MPI's library is refused"
	is "$(cat err.* | grep -c 'cannot restart')" 1 "by one rank"
	kill_all
	step=restart && restart_job mpich 2 && step="its end" && finish_job 2
	tell "and it comes back with MPICH's"
	kill_all
done

# The program's own library, although another one's launcher is there.
job_arena overridden
step=start && start_job mpich 2 "$programs/told.mpich" && step=checkpoint && job_checkpoint && kill_all
ranks mpich 2 trecr-restart --mpi=/nowhere/libmpi.so.40 ck
await -t 60 -p $launcher 2>>await.err
like "$(cat err.*)" "cannot load the MPI library that the launcher or --mpi names .*/nowhere/libmpi.so.40" \
	"a library that is not there is named"
trecr-restart --mpi=other ck >out 2>err
like "$(cat err)" "'other' of --mpi must be auto, same, mpich, openmpi or the path of a library" "another word for it is refused"
kill_all
done_testing
