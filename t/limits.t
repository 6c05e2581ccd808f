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
like "$(cat restart.err)" 'resource limit RLIMIT_STACK is lower here' "is told of"
whole "and the program is whole"
sweep >/dev/null

# ---- mappings ----

saved mappings
restart_here && finish
is "$status" 0 "a program with nearly as many mappings as there may be" || explain
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
	if ! unfit -v; then
		launch "$victim/idle" megabytes 400
		inside=$(program_of "$sup")
		used=$(($(sed -n 's/^VmSize:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$inside/status") << 10))
		prlimit --pid "$sup" --as=$((used + 65536)):$((used + 65536))
		not_ok "a process that has all the memory that it may is refused" quiet checkpoint
		like "$(cat ckpt.err)" "restart needs .* KiB are allowed here .RLIMIT_AS.*ulimit -Hv" "for that" || explain
		finish && said_ok
		result $? "and runs on" || explain
		sweep >/dev/null
	fi
else
	skip "few descriptors" "no setpriv"
fi
done_testing
