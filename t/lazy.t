#!/bin/bash
# trecr-restart --lazy: a program runs before its memory is there, and never sees that.
. "$(dirname "$0")/lib.sh"

# Nothing but what is asked for comes, also of small regions, before this file is there.
release=$scratch/release
export TRECR_TEST_LAZY=$release
RESTART_FLAGS=--lazy

# Of a supervisor's children, the program; and the process that fills its memory.
program_of() {
	local child
	for child in $(cat "/proc/$1/task/$1/children"); do
		[ "$(cat "/proc/$child/comm")" = trecr-lazy ] || echo "$child"
	done
}
# How many regions of the program wait for pages.
waiting() {
	grep -c '^VmFlags:.* um' "/proc/$(program_of "$sup")/smaps"
}
server=
server_of() {
	local child
	for child in $(cat "/proc/$1/task/$1/children"); do
		[ "$(cat "/proc/$child/comm")" != trecr-lazy ] || echo "$child"
	done
}
# A program that is back, and whose memory is not.
bring_back() { # VICTIM...
	rm -f "$release"
	arena x
	launch "$victim/$1" "${@:2}" && freeze_away && restart_here &&
		[ "$(waiting)" != 0 ] && server=$(server_of "$sup") && [ -n "$server" ]
}
ended() {
	await -t 60 -p "$1" 2>>await.err
}

# ---- who may ----
arena who
launch "$victim/idle" && freeze_away
if am_root; then
	setpriv --bounding-set -sys_ptrace --inh-caps -sys_ptrace "$build/trecr-restart" --lazy ck \
		</dev/null >refused.out 2>refused.err
	status=$?
else
	"$build/trecr-restart" --lazy ck </dev/null >refused.out 2>refused.err
	status=$?
fi
is $status 125 "without the privilege it is refused"
like "$(cat refused.err)" "--lazy needs .*CAP_SYS_PTRACE" "with the reason"
sweep >/dev/null
if ! am_root; then
	done_testing
	exit
fi
# With capabilities of its own, a program file takes away what capabilities its parent would hand on.
arena file_capabilities
cp "$victim/idle" .
few=+sys_ptrace,+sys_admin,+setuid,+setgid,+setpcap,+dac_override,+chown,+fowner,+kill
less=(setpriv --securebits +noroot --inh-caps "$few" --ambient-caps "$few")
if have setcap && "${less[@]}" true 2>/dev/null && setcap cap_net_raw+p idle 2>/dev/null &&
	[ "$(cat /proc/sys/vm/unprivileged_userfaultfd)" = 0 ] && launch ./idle && freeze_away; then
	"${less[@]}" "$build/trecr-restart" --lazy ck </dev/null >refused.out 2>refused.err
	is $? 125 "a program that has less privilege than trecr-restart is refused"
	like "$(cat refused.err)" "has no CAP_SYS_PTRACE, and vm.unprivileged_userfaultfd is not 1" "with that reason"
else
	skip "a program with less privilege" "no file capabilities here, or all may use userfaultfd(2)"
fi
sweep >/dev/null
arena who_may
launch "$victim/idle" && freeze_away
if ! restart_here; then
	grep -q -e '--lazy needs' restart.err && skip "the rest" "$(cat restart.err)" && done_testing && exit
fi
sweep >/dev/null

# ---- whatever is done to memory while it is missing ----
for v in lazy threads robust anon tree_family; do
	rm -f "$release"
	scenario "$v: all comes when it is needed" once "$victim/$v"
done
: >"$release"
for v in lazy thp tree_shared; do
	scenario "$v: restarted twice in a row, while all comes" twice "$victim/$v"
done
for RUN_FLAGS in --compress=lz4 --incremental "--incremental --compress=zstd --fork"; do
	rm -f "$release"
	arena x
	launch "$victim/lazy" && checkpoint && freeze_away && restart_here && finish
	is "${status:-}" 0 "with $RUN_FLAGS" || explain
	sweep >/dev/null
	status=
done
RUN_FLAGS=
rm -f "$release"
export TRECR_TEST_FILES=3
scenario "an image of several files" once "$victim/lazy"
unset TRECR_TEST_FILES
rm -f "$release"
RESTART_FLAGS="--lazy --namespace"
scenario "in a namespace" once "$victim/lazy"
RESTART_FLAGS=--lazy

# ---- what happens meanwhile ----
bring_back lazy || explain
rm -rf ck
finish
is "$status" 0 "the image may be removed meanwhile" || explain
ok "and nothing is left" sweep 60

bring_back lazy || explain
trecr-ckpt -s "$sup" >path 2>ckpt.err &
asked=$!
until trecr-ckpt --status "$sup" | grep -q 'stopping the program\|at work' || ! kill -0 $asked; do
	:
done
is "$(ls ck | grep -c '^ckpt-')" 1 "a checkpoint waits for memory"
: >"$release"
wait $asked
is $? 0 "and is taken when all is there" || explain
rm -f "$release"
restart_here && finish
is "$status" 0 "and is whole" || explain
sweep >/dev/null

bring_back lazy || explain
program=$(program_of "$sup")
kill -9 "$sup"
kill -USR1 "$program"
await -t 60 out '^(ok|differs.*)$' >/dev/null 2>>await.err
ok "when the supervisor is killed, the program still gets its memory" said_ok || explain
ended "$program"
ok "and nothing is left" sweep 60

bring_back lazy || explain
kill -9 "$server"
ended "$sup"
wait "$sup"
is $? 137 "when the process that fills memory is killed, the program is ended"
like "$(cat restart.err)" "process that fills the program's memory .* was killed" "with the reason"
is "$(cat out)" ready "before it sees any of it"

# Both at one moment: neither hears of the other's end. A thread that touches a missing page then waits for
# ever, in the program and in a child that it has made since.
waits_for_page() {
	local limit=$((SECONDS + 60))
	until [[ $(cat "/proc/$1/syscall") == -1\ * ]]; do
		[ -e "/proc/$1" ] && [ "$SECONDS" -lt "$limit" ] || return
	done 2>>await.err
}
bring_back lazy child || explain
program=$(program_of "$sup")
kill -USR1 "$sup"
child=$(await -t 60 -p "$sup" out '^child [0-9]+$' 2>>await.err)
child=${child#child }
kill -STOP "$server" "$sup"
kill -KILL "$server" "$sup"
ended "$server"
ended "$sup"
kill -USR1 "$program" "$child"
ok "when both are killed, the program waits for its memory" waits_for_page "$program" || explain
ok "and so does its child" waits_for_page "$child" || explain
is "$(cat out)" "ready
child $child" "neither sees any of it"
kill -KILL "$program" "$child"
ok "and nothing is left" sweep 60

bring_back tree_family || explain
kill -9 "$server"
ended "$sup"
ok "with all of its processes" sweep 0 || explain

bring_back idle touch 64 100 || explain
for image in ck/latest/[0-9]*; do
	size=$(stat -c %s "$image")
	head -c "$((size / 2))" /dev/zero | tr '\0' x | dd of="$image" bs=64k seek=4 conv=notrunc 2>/dev/null
done
kill -USR2 "$sup"
ended "$sup"
wait "$sup"
is $? 137 "a page that is damaged ends the program"
like "$(cat restart.err)" "memory cannot be brought back.* damaged" "with the reason"
unlike "$(cat out)" "touched" "before it sees any of it"
sweep >/dev/null

bring_back idle touch 64 100 || explain
kill -9 "$(program_of "$sup")"
ended "$sup"
wait "$sup"
is $? 137 "a program may end before its memory is there"
ok "and nothing is left" sweep 60

: >"$release"
unset TRECR_TEST_LAZY
arena background
launch "$victim/idle" touch 64 100 && freeze_away && restart_here || explain
server=$(server_of "$sup")
[ -z "$server" ] || ended "$server"
for i in {1..100}; do # the supervisor hears of it
	[ "$(waiting)" != 0 ] || break
	await -t 1 -p "$sup" 2>/dev/null
done
is "$(waiting)" 0 "in the background all comes without being asked for"
finish
is "$status" 0 "and is whole" || explain
done_testing
