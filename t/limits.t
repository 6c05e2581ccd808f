#!/bin/bash
# Limits that stand in the way, of a process (RLIMIT_*) or the machine (sysctl): the message names
# them, and nothing is lost. What the one who restarts may raise is no obstacle.
. "$(dirname "$0")/lib.sh"

# under LIMITS: restart_detached with these options of ulimit, one or more "-X N".
under() {
	# shellcheck disable=SC2086
	(for limit in "$@"; do ulimit $limit || exit; done && restart_detached)
	status=$?
	[ $status != 0 ] || sup=$(cat restart.out)
	return $status
}

# saved VICTIM...: its image is in ck, and it is gone.
saved() {
	arena "${1##*/}"
	launch "$victim/$1" "${@:2}" && freeze_away
}

# whole NAME
whole() {
	kill -USR1 "$sup" && await -t 60 -p "$sup" 2>>await.err && said_ok
	result $? "$1" || explain
}

# The shadow of AddressSanitizer needs more than these limits leave.
unfit() { # LIMIT
	[[ $1 =~ -S?[vd] ]] && grep -qa __asan_init "$build/trecr-restart"
}

# ---- a restart with lower soft limits: as if they were not ----

while IFS='|' read -r command limit; do
	name="$command, restarted with ulimit $limit"
	unfit "$limit" && continue
	# shellcheck disable=SC2086
	if ! saved $command; then
		skip "$name" "${skip_reason:-it cannot be saved}"
	elif under "$limit"; then
		whole "$name"
	else
		result 1 "$name" || explain
	fi
	sweep >/dev/null
done <<'END'
idle megabytes 200|-Sv 150000
idle megabytes 200|-Sd 100000
memfd|-Sf 1
unlinked|-Sf 1
mlock|-Sl 0
pending|-Si 1
mqueue|-Sq 0
uring plain|-Sv 4000000
END

# ---- with lower hard limits: said by name ----

while IFS='|' read -r command limit text; do
	name="$command, restarted with ulimit $limit"
	unfit "$limit" && continue
	# shellcheck disable=SC2086
	if ! saved $command; then
		skip "$name" "${skip_reason:-it cannot be saved}"
		continue
	fi
	if under "$limit"; then
		# Root may be above it all the same.
		whole "$name: no obstacle here"
	else
		like "$(tail -n 1 restart.err)" "^trecr-restart: cannot .*$text" "$name: named"
	fi
	leaves_nothing "nothing is left behind"
done <<'END'
idle megabytes 200|-v 150000|RLIMIT_AS
idle megabytes 200|-d 100000|RLIMIT_DATA
memfd|-f 1|RLIMIT_FSIZE
mlock|-l 0|RLIMIT_MEMLOCK
pending|-i 1|RLIMIT_SIGPENDING
mqueue|-q 0|RLIMIT_MSGQUEUE
threads|-n 64|RLIMIT_NOFILE
uring plain|-v 4000000|RLIMIT_AS
END

saved anon
ok "a stack that can be smaller only" under "-s 512" || explain
like "$(cat restart.err)" 'resource limit RLIMIT_STACK is lower here' "a notice says so"
whole "and the program is whole"
sweep >/dev/null

saved tree_family
ok "the same of all processes of a tree" under "-s 512" || explain
is "$(grep -c 'resource limit RLIMIT_STACK is lower here' restart.err)" 1 "is said once"
whole "and the program is whole"
sweep >/dev/null

# ---- mappings ----

name="a program with nearly as many mappings as there may be"
if saved mappings; then
	restart_here && finish
	is "$status" 0 "$name" || explain
elif [ -n "$skip_reason" ]; then
	skip "$name" "$skip_reason"
else
	result 1 "$name" || explain
fi
arena mappings-few
if launch "$victim/mappings" 0; then
	checkpoint
	like "$(cat ckpt.err)" 'has [0-9]+ mappings.*vm\.max_map_count is [0-9]+' \
		"one that has all of them cannot be saved: named"
	ok "and runs on" finish
	ok "whole" said_ok
	sweep >/dev/null
	arena mappings-tried
	launch "$victim/mappings" 2
	not_ok "with a few left it can, but not brought back, and so it is not ended" checkpoint -s
	like "$(cat ckpt.err)" 'could not be restarted here.* has [0-9]+ mappings.*vm\.max_map_count is [0-9]+' "named"
	finish
	ok "and runs on" said_ok
	leaves_nothing "nothing is left behind"
else
	skip "all mappings" "$skip_reason"
fi

# ---- a checkpoint ----

# The program's own limit is not the supervisor's.
arena own-limit
launch "$victim/idle" count 16
prlimit --pid "$(program_of "$sup")" --fsize=4096:4096
ok "a program that may write small files only" checkpoint || explain
finish
is "$status" 0 "is whole" || explain

# ---- few descriptors ----

# Users who may raise the hard limit are not concerned.
if ! am_root || have setpriv; then
	mkdir "$scratch/bounded"
	for tool in trecr-run trecr-restart; do
		echo "#!/bin/sh
			exec setpriv --bounding-set -sys_resource --inh-caps -sys_resource -- \
			$build/$tool \"\$@\"" >"$scratch/bounded/$tool"
	done
	chmod +x "$scratch"/bounded/*
	! am_root || PATH=$scratch/bounded:$PATH
	# A supervisor with few descriptors: what it cannot look at is not taken for ended.
	arena descriptors
	launch "$victim/tree_family"
	whole='' wrong='' few=0 processes=
	for n in $(seq 60 -1 7); do
		prlimit --pid "$sup" --nofile="$n:$n"
		: >ckpt.err
		if checkpoint; then
			count=$(find "$path/" -name '[0-9]*' | wc -l)
			processes=${processes:-$count}
			[ "$count" = "$processes" ] || wrong="$wrong $n:$count processes"
		elif grep -q 'Too many open files\|a restart would need .*ulimit -Hn' ckpt.err; then
			few=$((few + 1))
		else
			wrong="$wrong $n:$(cat ckpt.err)"
		fi
	done
	is "$wrong" "" "with few descriptors a checkpoint is whole or says that they are too few"
	isnt "$few" 0 "and in some cases they are"
	finish
	is "$status" 0 "the program is whole" || explain
	# Pipes and sockets need no numbers besides; nor does a child that has them elsewhere.
	ulimit -n 256
	cycle crowded 105
	# The files of an incremental image are open twice in the process whose memory is in them.
	arena sources
	ulimit -n 200
	RUN_FLAGS="--incremental --full-every 0"
	export TRECR_TEST_FILES=16
	launch "$victim/idle" touch 64 200
	for ((k = 1; k < 20; k++)); do
		checkpoint || break
		kill -USR2 "$(program_of "$sup")"
		await -t 60 -p "$sup" out "^touched $k\$" >/dev/null 2>>await.err
	done
	like "$(tail -n 1 ckpt.err)" "a restart would need [0-9]+ descriptors .* more than 200 are allowed" \
		"when so many checkpoints refer to each other that a restart could not open them, the next is refused" || explain
	kill -9 "$(program_of "$sup")"
	await -t 60 -p "$sup" 2>>await.err
	ok "and the last one can be restarted" restart_detached || explain
	unset TRECR_TEST_FILES
	RUN_FLAGS=
	sweep >/dev/null
	# All files of a tree are in one process for a moment.
	name="more files than one process may have are refused at the checkpoint"
	arena few
	ulimit -n 150
	cycle tree_files
	arena fewer
	ulimit -n 128
	if launch "$victim/tree_files" && ! checkpoint; then
		like "$(cat ckpt.err)" "for all open files of the tree.*ulimit -Hn" "$name"
	else
		result 1 "$name" || explain
	fi
	sweep >/dev/null
	# What the loader takes has no room beside the program's memory.
	arena full
	no_room="restart needs .* KiB are allowed here .RLIMIT_AS.*ulimit -Hv"
	if ! unfit -v; then
		launch "$victim/idle" megabytes 400
		inside=$(program_of "$sup")
		used=$(($(sed -n 's/^VmSize:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$inside/status") << 10))
		prlimit --pid "$sup" --as=$((used + 65536)):$((used + 65536))
		not_ok "a process that has all the memory that it may is refused" quiet checkpoint
		like "$(cat ckpt.err)" "$no_room" "for that" || explain
		finish && said_ok
		result $? "and runs on" || explain
		sweep >/dev/null
		# The hashes of the contents, 16 bytes a page, are in the new process while these are read.
		arena fuller
		launch "$victim/idle" megabytes 400
		used=$(($(sed -n 's/^VmSize:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$(program_of "$sup")/status") << 10))
		prlimit --pid "$sup" --as=$((used + (3 << 20))):$((used + (3 << 20)))
		freeze_away && (ulimit -v $((used / 1024 + 3072)) && restart_detached) && sup=$(cat restart.out)
		result $? "one with room for its hashes comes back" || explain
		prlimit --pid "$sup" --as=$((used + (1 << 20))):$((used + (1 << 20)))
		for option in "" --fork; do
			: >ckpt.err
			not_ok "with less it is refused${option:+ with $option}" quiet checkpoint ${option:+"$option"}
			like "$(cat ckpt.err)" "$no_room" "for that, too" || explain
		done
		kill -USR1 "$sup" && await -t 60 -p "$sup" 2>>await.err && said_ok
		result $? "and it is whole" || explain
		sweep >/dev/null
		# So are calls that read the contents, for each part of memory. How many these are shows when the copy is written.
		arena parts
		launch "$victim/idle" holes 64
		used=$(($(sed -n 's/^VmSize:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$(program_of "$sup")/status") << 10))
		prlimit --pid "$sup" --as=$((used + (800 << 10))):$((used + (800 << 10)))
		not_ok "memory in more parts than there is room for calls is refused with --fork" quiet checkpoint --fork
		like "$(cat ckpt.err)" "$no_room" "for that" || explain
		finish && said_ok
		result $? "and runs on" || explain
		sweep >/dev/null
	fi
else
	skip "few descriptors" "no setpriv"
fi

# A checkpoint takes threads.
if [ "$(id -u)" = 0 ]; then
	skip "few processes" "root may have as many as there can be"
else
	arena threads
	launch "$victim/idle"
	prlimit --pid "$sup" --nproc=1:
	not_ok "where the user has more processes than allowed, a checkpoint is refused" quiet checkpoint
	like "$(cat ckpt.err)" "cannot start a thread: .*ulimit -u" "for that" || explain
	prlimit --pid "$sup" --nproc="$(ulimit -Hu):"
	ok "and taken when there may be more" checkpoint
	finish
	is "$status" 0 "which the program does not notice" || explain
	sweep >/dev/null
fi
done_testing
