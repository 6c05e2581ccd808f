# mpi_job_lib.sh - what the tests of MPI programs with MPICH's library in the lower half have in common: a launcher starts each rank under a
# trecr-run of its own. To be sourced behind job_lib.sh. Output of the ranks goes to out.RANK and err.RANK.
# shellcheck shell=bash

# A test of another MPICH has set these to its compiler, with options, and its launcher.
[ -n "${mpi_compiler:-}" ] || mpi_compiler=(mpicc.mpich)
mpi_launcher=${mpi_launcher:-mpiexec.mpich}

have "${mpi_compiler[0]}" && have "$mpi_launcher" || skip_all "MPICH is not installed"
apart -mn
if [ -n "${TRECR_APART:-}" ]; then
	loopback_up
	[[ $scratch = /dev/shm/* ]] || mount -t tmpfs tmpfs /dev/shm # which would hide it
fi

run=(trecr-run -d ck --gpu=off)

build_programs() { # NAME...
	local program
	for program; do
		ok "$program is built" "${mpi_compiler[@]}" -Wall -Wno-stringop-overflow -O1 -o "$program" "$top/t/application/$program.c"
	done
}

# ranks COUNT COMMAND...: started by a launcher, whose pid is $launcher; output goes to out.RANK and err.RANK.
ranks() {
	rm -f out.* # which the launcher does not empty
	"$mpi_launcher" -outfile-pattern out.%r -errfile-pattern err.%r -n "$@" \
		</dev/null >launcher.out 2>launcher.err &
	launcher=$!
}

# The supervisor of a rank: a child of the launcher's proxy.
supervisor_of() { # RANK
	local proxy pid
	proxy=$(pgrep -P "$launcher" | tr '\n' ,) || return
	for pid in $(pgrep -P "${proxy%,}"); do
		! tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "PMI_RANK=$1" || echo "$pid"
	done
}

start_job() { # COUNT [ARGUMENT...]
	rm -f go
	# shellcheck disable=SC2086
	ranks "$1" "${run[@]}" ${RUN_FLAGS:-} -- "${PROGRAM:-$job}" "${@:2}" && all_in_a_round "$1"
}

finish_job() { # COUNT
	: >go
	launched_well && [ "$(cat out.* | sort | uniq -c | tr -s ' \n' ' ')" = " $1 ok${2:+ $1 ready} " ]
}

all_asleep() { # COUNT
	local rank
	for ((rank = 0; rank < $1; rank++)); do
		await -t 60 -p "$launcher" -e "asleep.$rank" 2>>await.err || return
	done
}

# MPICH 5's launcher leaves a file in /tmp when it is killed. Another test's launcher may just be reading its own.
: >"$scratch/begun"
remove_topologies() {
	find /tmp -maxdepth 1 -name 'hydra_hwloc_xmlfile_*' -user "$(id -u)" -newer "$scratch/begun" \
		-not -newermt '5 seconds ago' -delete
}
