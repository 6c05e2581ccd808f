#!/bin/bash
# MPI programs with MPICH's library in the lower half, each rank under a trecr-run of its own: they
# give what they give natively. A checkpoint is refused with the reason, and they run on.
. "$(dirname "$0")/lib.sh"

have mpicc.mpich && have mpiexec.mpich || skip_all "MPICH is not installed"
apart -mn
if [ -n "${TRECR_APART:-}" ]; then
	loopback_up
	mount -t tmpfs tmpfs /dev/shm
fi

lower=(trecr-run --alone --gpu=off --mpi=lower --)

# What programs of $1 ranks print, in any order.
job() { # RANKS COMMAND...
	timeout 60 mpiexec.mpich -n "$1" "${@:2}" 2>&1 | grep -v '^trecr-run: no checkpoint will' | sort
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

# By itself, without a launcher.
"${lower[@]}" ./calls abort >out 2>err
is "$? $(grep -c "done" out)" "7 1" "MPI_Abort ends the program, with what it has printed"
# shellcheck disable=SC2016 # $1 is of the inner shell
is "$("${lower[@]}" sh -c 'LD_LIBRARY_PATH=$1 exec ./calls' sh "$PWD" | grep -c "done")" 1 \
	"with LD_LIBRARY_PATH set by a script"

# By its ABI's name, as other distributions have it.
mkdir abi && ln -s "$(ldd calls | sed -n 's/.*libmpich.so.12 => \([^ ]*\).*/\1/p')" abi/libmpi.so.12
mpicc.mpich -O1 -c -o calls.o "$top/t/application/mpi_calls.c"
if gcc -o by-abi calls.o abi/libmpi.so.12 -pthread 2>err &&
	{ ! have patchelf || patchelf --replace-needed libmpich.so.12 libmpi.so.12 by-abi; }; then
	is "$(LD_LIBRARY_PATH=abi "${lower[@]}" ./by-abi | grep -c "done")" 1 "a program linked by the ABI's name"
fi

trecr-run -d img --gpu=off --mpi=lower -- ./calls wait >out 2>err &
sup=$!
await -t 60 -p $sup out "done" >/dev/null 2>await.err
program=$(program_of "$sup") && trecr-ckpt "$program" >ckpt 2>&1
like "$(cat ckpt)" "has called MPI, which lies in its lower half.*mpiexec -n N PROGRAM" \
	"a checkpoint is refused by its reason"
ok "and the program runs on" kill -0 $sup
kill $sup
wait $sup 2>/dev/null
is "$(ls img 2>/dev/null | grep -c ckpt-)" 0 "nothing is left of it"
done_testing
