# elsewhere_lib.sh - for tests of programs on simulated GPUs that come back elsewhere: what is there, and what becomes of a
# restart. To be sourced behind lib.sh.
# shellcheck shell=bash disable=SC2154

export SIM_MACHINE_FILE=$scratch/machine LD_LIBRARY_PATH=$scratch/driver
export RUN_FLAGS=--gpu=on

mkdir "$scratch/driver"
# driver NAME: the one that this machine has.
driver() {
	rm -f "$scratch/driver/"*
	cp "$build/t/sim/${1#plain}/libcuda.so.1" "$build/t/sim/libnvidia-ml.so.1" "$scratch/driver"
}
# machine LINE...: and what it is like.
machine() {
	printf '%s\n' "$@" >"$SIM_MACHINE_FILE"
}

# refused WHAT PATTERN [OPTION...]: so is the restart, in one line; nothing is left of it.
refused() {
	local what=$1 pattern=$2
	shift 2
	: >restart.err
	not_ok "$what: refused" quiet restart_detached "$@"
	like "$(cat restart.err)" "$pattern" "and why"
	is "$(grep -c '^trecr-restart: cannot ' restart.err)" 1 "in one line"
	leaves_nothing "and nothing is left of it"
}

# returns WHAT [OPTION...]: the restart works, and the program finds all as it was.
returns() {
	local what=$1
	shift
	: >restart.err
	if restart_here "$@" && finish && [ "$status" = 0 ] && [ "$(tail -n 1 out)" = ok ]; then
		result 0 "$what"
	else
		result 1 "$what"
		explain
	fi
	sweep 2 >/dev/null
}

# What the restart has told about GPUs.
told_of_restart() {
	grep GPU restart.err
}

# next_round WHAT N [OPTION...]: the same, and it goes on.
next_round() {
	local what=$1 n=$2
	shift 2
	: >restart.err
	restart_here "$@" && kill -USR1 "$sup" && await -p "$sup" out "^round $n\$" >/dev/null 2>>await.err
	result $? "$what" || explain
	unlike "$(cat out)" "differs: " "with all as it was"
}
