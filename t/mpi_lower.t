#!/bin/bash
# MPI programs with MPICH's library in the lower half, each rank under a trecr-run of its own: they
# give what they give natively. A program of one rank without a launcher is saved; what cannot be saved
# is refused with the reason, and the programs run on.
. "$(dirname "$0")/lib.sh"

have mpicc.mpich && have mpiexec.mpich || skip_all "MPICH is not installed"
apart -mn
if [ -n "${TRECR_APART:-}" ]; then
	loopback_up
	mount -t tmpfs tmpfs /dev/shm
fi

lower=(trecr-run -d lower.ck --gpu=off --mpi=lower --)

# What programs of $1 ranks print, in any order.
job() { # RANKS COMMAND...
	timeout 240 mpiexec.mpich -n "$1" "${@:2}" 2>&1 | grep -v '^trecr-run: no checkpoint will' | sort
}

alike() { # NAME COMMAND...: also with the library below
	local natively

	natively=$(job 2 "${@:2}")
	like "$natively" "done|rank" "$1 works natively"
	is "$(job 2 "${lower[@]}" "${@:2}")" "$natively" "$1 works with MPI in the lower half"
}

ok "a program is built" mpicc.mpich -O1 -o calls "$top/t/application/mpi_calls.c" -pthread
alike "calls of each family, and a profiler" ./calls
mpicc.mpich -O1 -no-pie -o fixed "$top/t/application/mpi_calls.c" -pthread
alike "a program at a fixed address" ./fixed
mpicc.mpich -w -O1 -o messages "$top/t/application/messages.c" && touch go
alike "a program with much under way" ./messages

if have mpifort.mpich && mpifort.mpich -o fortran "$top/t/application/mpi_fortran.f90" 2>err; then
	alike "a program in Fortran" ./fortran
else
	skip "a program in Fortran" "no compiler"
fi

# Ranks that do not wait for each other in the order in which the library looks at requests.
mpicc.mpich -Wall -Wno-stringop-overflow -O1 -pthread -o progress "$top/t/application/mpi_progress.c"
for case in sends-first barrier threads wait waitall session world mistakes; do
	is "$(job 2 "${lower[@]}" ./progress $case)" $'done\ndone' "partitioned and buffered messages: $case"
done

# By itself, without a launcher.
"${lower[@]}" ./calls abort >out 2>err
is "$? $(grep -c "done" out)" "74 1" "MPI_Abort ends the program, with what it has printed"
# shellcheck disable=SC2016 # $1 is of the inner shell
is "$("${lower[@]}" sh -c 'LD_LIBRARY_PATH=$1 exec ./calls' sh "$PWD" | grep -c "done")" 1 \
	"with LD_LIBRARY_PATH set by a script"

# Linkers lay out the tables of symbols, hashes and names differently.
for i in $(seq 400); do echo "int part_$i(void) { return $i; }"; done >parts.c
printf '%s\n' '#include <mpi.h>' 'int part_400(void);' 'int main(int argc, char **argv)' \
	'{ return MPI_Init(&argc, &argv) || part_400() != 400 || MPI_Finalize(); }' >whole.c
for linker in bfd gold lld; do
	have ld.$linker || { skip "a program linked by $linker" "this linker is not installed" && continue; }
	for style in gnu sysv; do
		ok "a library and a program are linked by $linker, with hashes of $style" eval "gcc -fuse-ld=$linker -Wl,--hash-style=$style \
			-shared -fPIC -o libparts.so parts.c && mpicc.mpich -fuse-ld=$linker -Wl,--hash-style=$style -o whole whole.c -L. -lparts -Wl,-rpath,'$PWD'"
		ok "they work with MPI in the lower half" "${lower[@]}" ./whole
	done
done

# By its ABI's name, as other distributions have it.
mkdir abi && ln -s "$(ldd calls | sed -n 's/.*libmpich.so.12 => \([^ ]*\).*/\1/p')" abi/libmpi.so.12
mpicc.mpich -O1 -c -o calls.o "$top/t/application/mpi_calls.c"
if gcc -o by-abi calls.o abi/libmpi.so.12 -pthread 2>err &&
	{ ! have patchelf || patchelf --replace-needed libmpich.so.12 libmpi.so.12 by-abi; }; then
	is "$(LD_LIBRARY_PATH=abi "${lower[@]}" ./by-abi | grep -c "done")" 1 "a program linked by the ABI's name"
fi

# ---- checkpoints ----

RUN_FLAGS="--close-fds --gpu=off --mpi=lower"

end_here() {
	local program
	program=$(program_of "$sup") && kill -KILL "$sup" "$program"
	wait "$sup" 2>/dev/null
	true
}

# UCX has System V shared memory for messages between ranks: it is the library's, not the program's.
three_times() {
	checkpoint && step="the image" && ! trecr-inspect ck | grep -qi sysv && end_here && step="first restart" && restart_here && step="second checkpoint" &&
		checkpoint && end_here && step="second restart" && restart_here &&
		step="third checkpoint" && freeze_away && step="third restart" && restart_here &&
		step="going on" && finish && step="its own checks" && [ "$status" = 0 ] && said_ok &&
		step="leaving nothing behind" && sweep 60
}

# What is not saved yet is named, and the program runs on to its end.
refused() {
	! checkpoint && grep -q "$reason" ckpt.err &&
		step="going on" && finish && [ "$status" = 0 ] && said_ok && [ ! -e ck/ckpt-000001 ]
}

alone=$PWD/alone
ok "a program of one rank is built" mpicc.mpich -O1 -o alone "$top/t/application/mpi_alone.c"
is "$("${lower[@]}" "$alone" session 2>&1 | grep -v "no checkpoint will")" ok "a session without MPI_Init"
scenario "collective calls and questions, over three restarts" three_times "$alone"
scenario "a program behind MPI_Finalize, over three restarts" three_times "$alone" finalized
reason="has called MPI_T_init_thread, and what that leaves in an MPI library"
scenario "MPI_T_init_thread is refused by its name" refused "$alone" MPI_T_init_thread
objects=$PWD/objects
ok "a program with objects is built" mpicc.mpich -O1 -o objects "$top/t/application/mpi_objects.c"
scenario "objects of each kind, over three restarts" three_times "$objects"

kept=$PWD/kept
ok "a program with errors of its own, memory and buffers is built" mpicc.mpich -O1 -o kept "$top/t/application/mpi_kept.c"
scenario "added errors, memory, a buffer and the order of attributes, over three restarts" three_times "$kept"

held=$PWD/held
ok "a program with messages under way to itself is built" mpicc.mpich -Wall -Wno-stringop-overflow -O1 -o held "$top/t/application/mpi_held.c"
scenario "messages that are complete, cancelled, freed and persistent, and a collective call, over three restarts" three_times "$held"
scenario "and after a checkpoint only" once_and_on "$held"
reason="it has a persistent request on a communicator that it has freed"
scenario "a persistent request on a freed communicator is refused, and goes on" refused "$held" left-persistent
reason="it has a message under way on a communicator that it has freed"
scenario "a receive on a freed communicator is refused, and goes on" refused "$held" left-receive

windows=$PWD/windows
ok "a program with windows is built" mpicc.mpich -Wall -Wno-stringop-overflow -O1 -o windows "$top/t/application/mpi_windows.c"
scenario "windows and epochs of each kind, over three restarts" three_times "$windows"

files=$PWD/files
ok "a program with files is built" mpicc.mpich -Wall -Wno-stringop-overflow -O1 -o files "$top/t/application/mpi_files.c"
scenario "files with views, pointers, modes and calls under way, over three restarts" three_times "$files"
scenario "and after a checkpoint only" once_and_on "$files"
reason="has opened besides with MPI_MODE_SEQUENTIAL"
scenario "a file of MPI_MODE_SEQUENTIAL is refused, and goes on" refused "$files" sequential
reason="/besides by MPI_File_open, and that name does not lead to the file any more"
scenario "a removed file is refused, and goes on" refused "$files" removed

# What it had written by the checkpoint.
keep_data() {
	freeze_away && cp data was
}

is_kept() { # WHAT: the first round is in the file again
	cmp -n 300 was "$1"
}

shortened() {
	keep_data && : >data && step="a restart with a shorter file" && ! restart_here &&
		grep -q 'data: it is shorter than at the checkpoint' restart.err &&
		step="a restart without the file" && mv data data.away && ! restart_here &&
		grep -q 'cannot open .*/data (opened by MPI_File_open)' restart.err &&
		step="a restart with it" && cp was data && restart_here && finish && [ "$status" = 0 ] && said_ok
}

rolled_back() {
	keep_data && echo more >>data && step="a restart" && restart_here --rollback-files && finish &&
		[ "$status" = 0 ] && said_ok && step="what was cut" && [ "$(cat data.trecr-*)" = more ]
}

put_back() {
	keep_data && rm data && step="a restart" && restart_here && step="what is in the file" && is_kept data &&
		finish && [ "$status" = 0 ] && said_ok
}
scenario "without what was in its file it is not brought back" shortened "$files"
scenario "what was written since is cut with --rollback-files" rolled_back "$files"
RUN_FLAGS+=" --save-files" scenario "a file comes back with --save-files" put_back "$files"

threads=$PWD/threads
ok "a program with threads is built" mpicc.mpich -Wall -O1 -pthread -o threads "$top/t/application/mpi_threads.c"
scenario "several threads in calls, over three restarts" three_times "$threads"

# With variables of a launcher that is no more at the restart.
PMI_RANK=0 scenario "the only rank of a launcher, restarted without one" three_times "$alone" launched
done_testing
