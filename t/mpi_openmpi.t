#!/bin/bash
# MPI programs of Open MPI's ABI, in C, C++ and Fortran, with its library in the lower half, each rank under a trecr-run of its own: they give
# what they give natively; a program of one rank, and jobs of several, are saved, killed, and brought back by another
# launcher. What cannot be saved is refused with the reason.
TEST_LIMIT=${TEST_LIMIT:-900}
. "$(dirname "$0")/lib.sh"
. "$top/t/job_lib.sh"

have mpicc.openmpi && have mpirun.openmpi || skip_all "Open MPI is not installed"
apart -mn
if [ -n "${TRECR_APART:-}" ]; then
	loopback_up
	mount -t tmpfs tmpfs /dev/shm # where the library leaves files when it is killed
fi
# As many ranks as are asked for, on however few processors. Its sockets have names of limited length.
export OMPI_MCA_rmaps_base_oversubscribe=1 TMPDIR=$scratch
# Of a killed job its shared memory is left: for a user, who has no /dev/shm apart, where the test removes it.
[ -n "${TRECR_APART:-}" ] || export OMPI_MCA_btl_vader_backing_directory=$scratch
! am_root || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

build() { # NAME [FLAG...]: of t/application/mpi_NAME.c
	# Of MPI_UNWEIGHTED the compiler warns that it is no address.
	ok "mpi_$1 is built" mpicc.openmpi -w -O1 "${@:2}" -o "$1" \
		"$top/t/application/mpi_$1.c" -pthread
}

lower=(trecr-run --alone --gpu=off --mpi=lower --)

# What programs of $1 ranks print, in any order.
job() { # RANKS COMMAND...
	timeout 240 mpirun.openmpi -n "$1" "${@:2}" 2>&1 | grep -v '^trecr-run: no checkpoint will' | sort
}

alike() { # NAME COMMAND...: also with the library below
	local natively

	natively=$(job 2 "${@:2}")
	if grep -q MPI_ERR_WIN <<<"$natively"; then # an Open MPI without the component for windows that these ranks need
		skip "$1 works natively" "this Open MPI makes no windows for ranks of one machine"
		skip "$1 works with MPI in the lower half" "this Open MPI makes no windows for ranks of one machine"
		return
	fi
	like "$natively" "done|rank" "$1 works natively"
	is "$(job 2 "${lower[@]}" "${@:2}")" "$natively" "$1 works with MPI in the lower half"
}

build calls
alike "calls of each family, and a profiler" ./calls
ok "mpi_calls is built for a fixed address" mpicc.openmpi -w -O1 -no-pie -o fixed "$top/t/application/mpi_calls.c" -pthread
alike "a program at a fixed address, which has copies of the library's variables," ./fixed
ok "a program with much under way is built" mpicc.openmpi -w -O1 -o much "$top/t/application/messages.c"
touch go
alike "a program with much under way" ./much
build openmpi
alike "constants, statuses, and what only Open MPI has" ./openmpi

"${lower[@]}" ./calls abort >out 2>err
is $? 74 "MPI_Abort ends the program"

# ---- in Fortran ----

# Of one text three programs, by mpif.h, by the module mpi, and by mpi_f08.
fortran_jobs=()
build_fortran() { # NAME [FLAG...]
	ok "a program in Fortran is built ($1)" mpifort.openmpi -w -O1 -fallow-argument-mismatch -ffree-line-length-none \
		"${@:2}" -J. -o "$1" "$top/t/application/mpi_fortran_job.F90" && fortran_jobs+=("$PWD/$1")
}

# What a library that has to have Open MPI's own beside it makes of a program.
stays_native() { # NAME COMMAND...
	"${lower[@]}" "${@:2}" >out 2>err
	like "$(cat err)" "^trecr: .*C\+\+.* as without --mpi=lower" "$1: a message says that it runs as without --mpi=lower"
	is "$(job 2 "${lower[@]}" "${@:2}" 2>&1 | grep -c "done")" 2 "$1: it runs"
}

if have mpifort.openmpi && mpifort.openmpi -o fortran "$top/t/application/mpi_fortran.f90" 2>err; then
	alike "mpi_fortran" ./fortran
	"${lower[@]}" ./fortran >out 2>err
	is "$(grep -v '^trecr-run: no checkpoint will' err)" "" "trecr says nothing of mpi_fortran's library"
	library=$(ldd fortran | sed -n 's/.*libmpi_mpifh.so.40 => \([^ ]*\).*/\1/p')
	names() { nm -D --defined-only "$1" | sed -n 's/.* [TWDB] //p' | sort -u; }
	is "$(comm -23 <(names "$library") <(names "$build/lib/trecr/stubs/libmpi_mpifh.so.40") | grep -v '_dummy$\|_class$')" "" \
		"the library for Fortran has all functions of Open MPI's"
	build_fortran fortran_header -DBY_HEADER
	build_fortran fortran_module
	build_fortran fortran_f08 -DBY_F08
	for program in "${fortran_jobs[@]}"; do
		mkdir -p "${program##*/}.links" && cd "${program##*/}.links" && touch go &&
			is "$(job 3 "${lower[@]}" "$program" | uniq -c | tr -s ' \n' ' ')" " 3 ok 3 ready " \
				"${program##*/} gets what it should"
		cd ..
	done
	ok "a library in C that Fortran calls is built" mpicc.openmpi -O1 -c -o library.o "$top/t/application/mpi_fortran_library.c"
	values=(-w -fallow-argument-mismatch -ffree-line-length-none "$top/t/application/mpi_fortran_values.F90" library.o)
	ok "mpi_fortran_values is built" mpifort.openmpi -J. -o values "${values[@]}"
	alike "mpi_fortran_values" ./values
	# Between jobs it talks by TCP alone, and not by the loopback if it is not told to.
	OMPI_MCA_btl_tcp_if_include=lo alike "mpi_fortran_values, which spawns programs with arguments," "$PWD/values" spawn
	# It finds the library beside that for Fortran, wherever that is.
	ok "mpi_fortran is linked with the library for Fortran alone" mpifort.openmpi -o beside "$top/t/application/mpi_fortran.f90" \
		-Wl,--as-needed
	is "$(readelf -d beside | grep -c 'libmpi\.so')" 0 "it needs no libmpi.so by its name"
	mkdir elsewhere && for file in libmpi libmpi_mpifh; do
		cp -L "${library%/*}/$file.so.40" elsewhere
	done
	alike "mpi_fortran, linked with the library for Fortran alone, which is elsewhere," env LD_LIBRARY_PATH="$PWD/elsewhere" ./beside
	# The library for C++ may come before or behind that for Fortran.
	ok "mpi_fortran_values is built with the library for C++ behind that for Fortran" mpifort.openmpi -J. -o behind "${values[@]}" -Wl,--no-as-needed -lmpi_mpifh -lmpi_cxx
	alike "a program with the library for C++ behind that for Fortran" ./behind
	ok "mpi_fortran is built with the library for C++ in front of that for Fortran" mpifort.openmpi -o before "$top/t/application/mpi_fortran.f90" \
		-Wl,--no-as-needed -lmpi_cxx
	alike "a program with the library for C++ in front of that for Fortran" ./before
	# A later version of the library has functions that the stub has not.
	mkdir newer
	cp -L "$library" newer/libmpi_mpifh.so.40 && printf 'ompi_session_init_f\0' >>newer/libmpi_mpifh.so.40
	stays_native "a program with a later library for Fortran" env LD_LIBRARY_PATH="$PWD/newer" ./fortran
else
	skip "a program in Fortran" "no compiler"
fi
ok "a program in C with the library for C++ is built" mpicc.openmpi -w -O1 -o cxx "$top/t/application/mpi_calls.c" \
	-Wl,--no-as-needed -lmpi_cxx -pthread
alike "a program in C with the library for C++" ./cxx

# ---- in C++ ----

# All that mpicxx builds has the library for C++; only its bindings need Open MPI's own library.
in_cxx=
if have mpicxx.openmpi && mpicxx.openmpi -O1 -o in_cxx "$top/t/application/mpi_cxx.cc" 2>compiler.err; then
	alike "a program in C++" ./in_cxx
	ok "a program in C++ is built for a fixed address" mpicxx.openmpi -no-pie -O1 -o fixed "$top/t/application/mpi_cxx.cc"
	alike "a program in C++ at a fixed address" ./fixed
	ok "one whose symbols are all bound at its start is built" mpicxx.openmpi -Wl,-z,now -O1 -o bound "$top/t/application/mpi_cxx.cc"
	alike "a program in C++ whose symbols are bound at its start" ./bound
	ok "one with bindings for C++ is built" mpicxx.openmpi -DBY_BINDINGS -O1 -o bindings "$top/t/application/mpi_cxx.cc"
	stays_native "a program that uses the bindings for C++" ./bindings
	ok "one with bindings is built for a fixed address" mpicxx.openmpi -DBY_BINDINGS -no-pie -O1 -o bindings "$top/t/application/mpi_cxx.cc"
	stays_native "a program at a fixed address that uses the bindings for C++" ./bindings
	if have ld.lld; then
		ok "one with bindings is linked by lld" mpicxx.openmpi -DBY_BINDINGS -fuse-ld=lld -O1 -o bindings "$top/t/application/mpi_cxx.cc"
		stays_native "a program that uses the bindings for C++ and was linked by lld" ./bindings
	else
		skip "a program that uses the bindings for C++ and was linked by lld" "ld.lld is not installed"
	fi
	ok "a library in C++ is built" mpicxx.openmpi -DAS_LIBRARY -O1 -shared -fPIC -o libcxx_sum.so "$top/t/application/mpi_cxx.cc"
	ok "a program in C is linked with it" mpicc.openmpi -w -O1 -o in_cxx_job "$top/t/application/mpi_job.c" \
		-Wl,--no-as-needed -L. -Wl,-rpath,"$PWD" -lcxx_sum -pthread && in_cxx=$PWD/in_cxx_job
	ok "the same library is built with bindings" mpicxx.openmpi -DAS_LIBRARY -DBY_BINDINGS -O1 -shared -fPIC \
		-o libcxx_bindings.so "$top/t/application/mpi_cxx.cc"
	"${lower[@]}" ./in_cxx "$PWD/libcxx_bindings.so" >out 2>err
	like "$(cat err)" "^trecr: .*bindings for C\+\+ .*use --mpi=whole" "bindings that come later are told of"
	like "$(cat err)" "trecr: an operation in C\+\+ needs Open MPI's library .*use --mpi=whole" "and what of them does not work"
else
	skip "a program in C++" "no compiler"
fi

# ---- one rank, without a launcher ----

RUN_FLAGS="--close-fds --gpu=off --mpi=lower"

end_here() {
	local program
	program=$(program_of "$sup") && kill -KILL "$sup" "$program"
	wait "$sup" 2>/dev/null
	true
}

alone_three_times() {
	checkpoint && end_here && step="first restart" && restart_here && step="second checkpoint" &&
		checkpoint && end_here && step="second restart" && restart_here &&
		step="third checkpoint" && freeze_away && step="third restart" && restart_here &&
		step="going on" && finish && step="its own checks" && [ "$status" = 0 ] && said_ok &&
		step="leaving nothing behind" && sweep 60
}

refused() {
	! checkpoint && grep -q "$reason" ckpt.err &&
		step="going on" && finish && [ "$status" = 0 ] && said_ok && [ ! -e ck/ckpt-000001 ]
}

for program in alone objects kept threads job lasting; do
	build $program
done
alone=$PWD/alone objects=$PWD/objects kept=$PWD/kept threads=$PWD/threads
job=$PWD/job lasting=$PWD/lasting
for program in "$alone" "$objects" "$kept" "$threads"; do
	scenario "mpi_${program##*/}, over three restarts" alone_three_times "$program"
done
scenario "a program behind MPI_Finalize, over three restarts" alone_three_times "$alone" finalized
for function in MPI_T_init_thread MPI_Win_allocate MPI_File_open; do
	reason="has called $function, and what that leaves in an MPI library"
	scenario "$function is refused by its name" refused "$alone" $function
done

# ---- several ----

# ranks COUNT COMMAND...: started by a launcher, whose pid is $launcher; each has its output in out.RANK and err.RANK.
ranks() {
	local count=$1
	shift
	rm -f pid.*
	# shellcheck disable=SC2016 # of the inner shell
	mpirun.openmpi -n "$count" sh -c 'r=$OMPI_COMM_WORLD_RANK; echo $$ >pid.$r; exec "$@" >>out.$r 2>>err.$r' sh "$@" \
		</dev/null >launcher.out 2>launcher.err &
	launcher=$!
}

start_job() { # COUNT [ARGUMENT...]
	rm -f go
	ranks "$1" trecr-run -d ck --gpu=off --mpi=lower -- "$PROGRAM" "${@:2}" && all_in_a_round "$1"
}

finish_job() { # COUNT
	: >go
	launched_well && [ "$(cat out.* | sort | uniq -c | tr -s ' \n' ' ')" = " $1 ok $1 ready " ]
}

# Without mpi_messages, which waits for ever natively: in MPI_Wait for a message whose datatype has been freed.
for PROGRAM in "$job" "$lasting" ${in_cxx:+"$in_cxx"} "${fortran_jobs[@]}"; do
	for count in 2 3; do
		name=${PROGRAM##*/}
		job_arena "$name-$count"
		three_times $count
		tell "$name, $count ranks, three times saved, killed and brought back"
		kill_all
	done
done

PROGRAM=$job
job_arena ended
step=start && start_job 2 && step=checkpoint && job_checkpoint -s && step="its end" &&
	await -t 60 -p $launcher 2>>await.err && step=restart && restart_job 2 && step="its end" && finish_job 2
tell "trecr-ckpt -s ends all ranks, which are brought back"
kill_all
ranks 3 trecr-restart ck
await -t 60 -p $launcher 2>>await.err
like "$(cat err.*)" 'of a job of 2 ranks, and 3 have been started' "with another number of ranks it is not brought back"
kill_all

job_arena inherited
export PMI_RANK=0 PMI_SIZE=1
step=start && start_job 2 && step=checkpoint && job_checkpoint && step="its end" && finish_job 2
tell "a job is saved that has inherited the variables of a launcher of one rank"
unset PMI_RANK PMI_SIZE
kill_all

job_arena one
step=start && ranks 1 trecr-run -d ck --gpu=off --mpi=lower -- "$alone" launched &&
	await -t 60 -p $launcher out.0 '^ready$' >/dev/null 2>>await.err && sup=$(cat pid.0) &&
	step=checkpoint && checkpoint && kill_all && step=restart && rm -f pidfile && ranks 1 trecr-restart --pidfile pidfile ck &&
	await -t 60 -p $launcher -e pidfile 2>>await.err && step="its end" && kill -USR1 "$(cat pid.0)" &&
	launched_well && [ "$(tail -n 1 out.0)" = ok ]
tell "a launcher's only rank has another launcher's connection after a restart"
kill_all

# Their environment is the shell's, which was started by the former launcher.
job_arena executed
# shellcheck disable=SC2016 # of the inner shell
shell=': >"early.$OMPI_COMM_WORLD_RANK" && while [ ! -e awake ]; do sleep 0.02; done && "$0"'
step=start && ranks 2 trecr-run -d ck --gpu=off --mpi=lower -- sh -c "$shell" "$job" &&
	await -t 60 -p $launcher -e early.0 2>>await.err && await -t 60 -p $launcher -e early.1 2>>await.err &&
	step=checkpoint && job_checkpoint && kill_all && step=restart && ranks 2 trecr-restart ck && : >awake &&
	step="a round" && all_in_a_round 2 && step="second checkpoint" && job_checkpoint && kill_all &&
	step="second restart" && restart_job 2 && step="its end" && finish_job 2
tell "programs that a rank executes behind a restart belong to the launcher of the restart"
kill_all
done_testing
