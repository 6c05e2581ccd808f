#!/bin/bash
# Whatever options a checkpoint and a restart have, and in whatever order: memory is to the last byte what it was.
# A tree that does at random what can be done to memory is stopped, looked at, saved, ended and brought back, and looked at
# again. SEED and ROUNDS say which sequences; each prints its options when it fails.
TEST_LIMIT=${TEST_LIMIT:-900}
. "$(dirname "$0")/lib.sh"

# The kernel writes to a thread's rseq area whenever it runs on another processor.
export GLIBC_TUNABLES=glibc.pthread.rseq=0
RANDOM=${SEED:=$RANDOM}
note "SEED=$SEED"

memory() { # stop|stopped|show|continue
	python3 "$top/t/tool/tree_memory.py" "$1" "$sup"
}

# draw N: `drawn` is below N. Not in a subshell, where RANDOM is another sequence.
draw() {
	drawn=$((RANDOM % $1))
}

# one_of WORD...: adds it to `options`, all of its words; "" is none.
one_of() {
	local word
	draw $#
	shift $drawn
	for word in $1; do options+=("$word"); done
}

for_checkpoint() {
	options=()
	one_of "" "" --fork
	one_of "" "" --compress=lz4 --compress=zstd:1 --compress=none
	one_of "" "" -j1 -j3
}

# Of trecr-run, and of further checkpoints of a restart.
for_run() {
	options+=(--save-files)
	one_of "" --incremental "--incremental --dirty=uffd" "--incremental --dirty=uffd"
	one_of "" "" --full-every=2 --full-every=0
	one_of "" --fork
	one_of "" --compress=lz4
}

for_restart() {
	options=()
	! am_root || one_of "" --lazy
	one_of "" "" --namespace
	one_of "" "" --verify
	draw 2
	[ "$drawn" = 0 ] || { options+=(--forget-options) && for_run; }
}

# For some time: it is what is tested.
run_for() { # MILLISECONDS
	perl -e 'select undef, undef, undef, $ARGV[0] / 1000' "$1"
}

# do_it COMMAND...: shown when something fails
do_it() {
	history+="; $*"
	"$@"
}

# As a machine that fails does.
kill_all() {
	timeout 120 python3 "$top/t/tool/tree_memory.py" kill "$sup"
}

# Saved while it is stopped. Behind a checkpoint without -s it may run on, until it is killed.
save() {
	for_checkpoint
	draw 3
	case $drawn in
	0)
		do_it checkpoint -s "${options[@]/--fork/-v}" && await -t 60 -p "$sup" 2>>await.err
		;;
	1)
		do_it checkpoint "${options[@]}" && do_it kill_all
		;;
	2)
		do_it checkpoint "${options[@]}" && do_it memory continue && run_for 50 && do_it kill_all
		;;
	esac
}

# Saved while it runs; what is in that checkpoint is not looked at.
save_between() {
	local i
	draw 3
	for ((i = drawn; i > 0; i--)); do
		for_checkpoint
		do_it checkpoint "${options[@]}" || return
		draw 60
		run_for "$drawn"
	done
}

bring_back() {
	for_restart
	do_it restart_detached "${options[@]}"
}

life() {
	draw 100
	run_for "$drawn" && save_between && memory stop && memory show >before && save && bring_back || return
	# Once more before anything has touched it, pages that have not come yet included.
	draw 3
	[ "$drawn" != 0 ] || { save && bring_back; } || return
	memory stopped && memory show >after && do_it diff before after >differs && do_it memory continue
}

for ((round = 0; round < ${ROUNDS:-4}; round++)); do
	arena "$round"
	options=()
	for_run
	RUN_FLAGS=${options[*]}
	history="trecr-run $RUN_FLAGS"
	wrong=
	draw 10000
	launch "$victim/dirtying" "$drawn" || wrong=start
	for ((i = 0; i < ${LIVES:-4}; i++)); do
		[ -n "$wrong" ] || life || wrong="life $i"
	done
	[ -n "$wrong" ] || do_it finish || [ -n "$status" ] || wrong="does not end"
	is "$wrong" "" "round $round" || { diag "$history"; explain differs; }
	sweep >/dev/null
done
done_testing
