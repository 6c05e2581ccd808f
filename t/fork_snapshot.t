#!/bin/bash
# --fork: the program runs on while its memory is written from a copy. The image is of one moment,
# the program does not see the copy, and nothing is left of that whatever ends meanwhile.
. "$(dirname "$0")/lib.sh"

# The supervisor's calls can be held (t/fault/fault.c).
held() {
	RUN_WITH="env LD_PRELOAD=$build/t/fault.so TRECR_FAULT=$PWD/fault"
	faults fault
	trecr-run() {
		exec $RUN_WITH "$build/trecr-run" "$@"
	}
	launch "$@" || explain
	unset -f trecr-run
}

# Start a checkpoint that stays where the first page is about to be read from the copy (or before the first call
# of another class), with the program running on; copy is that process.
hold_copy() {
	faults fault "${HELD_AT:-read}" 1 copies hold
	checkpoint --fork "$@" &
	asked=$!
	await -t 60 -e never -p $asked 2>/dev/null &
	until faults fault fired; do
		kill -0 $asked 2>/dev/null || break
		await -t 0.02 -e never 2>/dev/null
	done
	kill $! 2>/dev/null
	copy=$(copies | head -1)
	ok "there is a copy" [ -n "$copy" ]
}
release() {
	faults fault off
	wait $asked
}

# Processes that the supervisor traces.
copies() {
	grep -l "^TracerPid:.[1-9]" /proc/[1-9]*/status 2>/dev/null | while read -r f; do
		local tracer
		tracer=$(sed -n 's/^TracerPid:.//p' "$f" 2>/dev/null)
		[ ! -d "/proc/$sup/task/${tracer:-0}" ] || echo "$f"
	done | tr -dc '0-9\n'
}

# descendants PID: parents first
descendants() {
	local pid
	for pid in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
		echo "$pid"
		descendants "$pid"
	done
}

# The program ends by force, so that nobody in it sees another's end.
kill_all() {
	local pids pid
	pids=$(descendants "$sup")
	# shellcheck disable=SC2086
	kill -STOP $pids && kill -9 $pids
	for pid in $pids $sup; do
		await -t 60 -p "$pid" 2>>await.err || return
	done
	wait "$sup" 2>/dev/null || true
}

# ---- of one moment ----
fork_twice() {
	local n
	for n in 1 2; do
		checkpoint --fork $FLAGS && [ -z "$(told)" ] || return
		kill_all
		step="restart $n"
		if [ $n = 1 ]; then restart_detached; else restart_here; fi || return
		step="checkpoint $n"
	done
	step="its own checks"
	finish && [ "$status" = 0 ] && said_ok && sweep 60
}
for FLAGS in "" "--compress=lz4"; do
	scenario "the image is of one moment, twice ${FLAGS:+with }$FLAGS" fork_twice "$victim/racing"
done
FLAGS=
scenario "the same of a tree" fork_twice "$victim/racing" 2

# ---- invisible ----
arena invisible
held "$victim/racing" 1
hold_copy
isnt "$(cut -d' ' -f6 "/proc/$copy/stat")" "$(cut -d' ' -f6 "/proc/$(program_of "$sup")/stat")" \
	"the copy is in a session of its own"
is "$(ls "/proc/$copy/fd")" "" "and has no descriptor"
is "$(grep -c 'rw-s' "/proc/$copy/maps")" 0 "and no shared memory"
kill -USR2 "$sup"
release
is $? 0 "the checkpoint succeeds" || explain
await -t 60 -p "$sup" out '^let go$' >/dev/null
is "$(copies)" "" "the copy has ended"
ok "the image is whole" quiet trecr-inspect --verify ck
finish
is "$status" 0 "nobody has held anything, and no child was seen" || explain

# ---- what happens meanwhile ----

# The walk over the copy's page tables comes first.
arena drops
held "$victim/dropping"
HELD_AT=open hold_copy
kill -USR2 "$(program_of "$sup")"
await -t 60 -p "$sup" out '^dropped$' >/dev/null
release
is $? 0 "a program that drops its memory before anyone has looked which pages there are is saved" || explain
kill_all
restart_here && finish
is "$status" 0 "with the memory that it had" || explain

# The program has ended since the copy was made.
saved_when_it_ran() { # WHAT
	release
	is $? 0 "$1" || explain
	await -t 60 -p "$sup"
	restart_here && finish
	is "$status" 0 "as it was" || explain
}

arena ends
held "$victim/racing"
hold_copy
program=$(program_of "$sup")
kill -9 "$program"
saved_when_it_ran "a program that is killed meanwhile is saved"

arena ends_itself
held "$victim/racing" 1
hold_copy
kill -USR1 "$(program_of "$sup")"
await -t 60 -p "$sup" out '^ok$' >/dev/null
saved_when_it_ran "so is one that ends by itself"

arena executes
cat >change.sh <<'END'
fill=$(printf %08000000d 0)
trap 'exec sleep 1000' USR2
trap 'echo ${#fill}; exit' USR1
echo ready
while :; do read -r -t 1 <>fifo; done
END
mkfifo fifo
held bash change.sh
hold_copy
program=$(program_of "$sup")
kill -USR2 "$program"
await -t 60 -p "$sup" "/proc/$program/comm" '^sleep$' >/dev/null
release
is $? 0 "so is one that executes another program" || explain
kill -9 "$program"
await -t 60 -p "$sup"
restart_here && finish
is "$(tail -1 out)" 8000000 "as it was" || explain

arena copy_killed
held "$victim/racing"
hold_copy
kill -9 "$copy"
release
isnt $? 0 "without its copy the checkpoint fails"
like "$(cat ckpt.err)" "the copy of process .* has been killed" "and says so"
is "$(ls ck)" lock "nothing is left of it"
ok "another succeeds" checkpoint --fork || explain
finish
is "$status" 0 "the program is whole" || explain

arena supervisor_killed
held "$victim/racing"
program=$(program_of "$sup")
hold_copy
kill -9 "$sup"
ok "the copy ends with the supervisor" await -t 60 -p "$copy"
ok "the program does not" kill -0 "$program"
wait $asked
kill -USR1 "$program"
await -t 60 -p "$program"
is "$(cat out)" "ready
ok" "and is whole" || explain

# ---- what stays stopped ----
arena little
launch "$victim/idle" || explain
ok "a small program is not copied" checkpoint --fork -v || explain
finish
arena unsuitable
launch "$victim/racing" 1 adopts || explain
ok "with a process that takes orphans over" checkpoint --fork || explain
like "$(cat ckpt.err)" 'was stopped while its memory was written: a process .* takes orphans over' \
	"its descendants are stopped until all is written, and the user is told why"
kill_all
restart_here && finish
is "$status" 0 "that is right, too" || explain
trecr-ckpt --fork -s 1 2>ckpt.err
is $? 1 "a program that is to be ended"
like "$(cat ckpt.err)" 'exclude each other' "has nothing to run on for"

# ---- the default at an interval, and how much memory it may take ----
arena limit
RUN_FLAGS="--fork-limit 1M"
launch "$victim/racing" || explain
ok "with less memory to spare" checkpoint --fork || explain
like "$(cat ckpt.err)" 'was stopped while its memory was written: a copy could need more memory' \
	"the program is stopped, and the user is told why"
kill_all
restart_here && finish
is "$status" 0 "that is right, too" || explain

arena interval
RUN_FLAGS="-i 1"
held "$victim/racing"
faults fault read 1 copies hold
until faults fault fired || ! kill -0 "$sup" || [ -e ck/ckpt-000001 ]; do
	await -t 0.02 -e never 2>/dev/null
done
ok "at an interval a copy is made without being asked for" [ -n "$(copies)" ]
faults fault off
ok "and written" await_dir ck/ckpt-000001 || explain
kill_all
restart_here && finish
is "$status" 0 "that is right, too" || explain

arena never
RUN_FLAGS="-i 1 --fork-limit 0"
launch "$victim/racing" || explain
ok "unless it may take no memory" await_dir ck/ckpt-000002 || explain
is "$(grep -c 'a copy could need more memory' err)" 1 "which is said once" || explain
finish
is "$status" 0 "and the program is whole" || explain

# ---- together with all else ----
# The checkpoint of number $1 from now on; restarts go on taking them, as they keep the options.
later_checkpoint() {
	local newest
	newest=$(readlink ck/latest) || newest=0
	await_dir "ck/ckpt-$(printf %06d $((10#${newest#ckpt-} + $1)))"
}
RUN_FLAGS="--fork --incremental --full-every=0 --dirty=uffd -i 1 --compress=lz4"
arena periodic
launch "$victim/racing" 1 || explain
ok "periodic, incremental and compressed" later_checkpoint 4 || explain
kill_all
ok "restarted" restart_detached || explain
ok "and so do later ones" later_checkpoint 2 || explain
like "$(trecr-inspect ck/latest 2>&1)" "since the last full one" "with what has changed only"
kill_all
RUN_FLAGS=
restart_here && finish
is "$status" 0 "that is right, twice over" || explain
done_testing
