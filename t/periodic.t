#!/bin/bash
# Checkpoints without being asked each time: -i, --ckpt-signal; and -k, which removes old ones.
. "$(dirname "$0")/lib.sh"

# no_timer: no supervisor's timer is set.
no_timer() {
	! grep -qs '^it_value' /proc/$sup/fdinfo/*
}

arena interval
RUN_FLAGS="-i 1 -k 3"
launch "$victim/idle"
ok "-i 1 takes checkpoints" await_dir ck/ckpt-000005
# The sixth may be on its way: at most one more than -k is there at any time.
n=$(find ck -maxdepth 1 -name 'ckpt-??????' | wc -l)
ok "-k 3 keeps three" [ "$n" -ge 3 ] && [ "$n" -le 4 ]
not_ok "the first is gone" [ -e ck/ckpt-000001 ]
finish
is "$status" 0 "the program is whole" || explain
restart_here
later=$(printf 'ck/ckpt-%06d' $((10#$(readlink ck/latest | tr -dc 0-9) + 4)))
ok "the newest can be restarted, and checkpoints go on at the same interval" await_dir "$later" || explain
n=$(find ck -maxdepth 1 -name 'ckpt-??????' | wc -l)
ok "three are kept still" [ "$n" -ge 3 ] && [ "$n" -le 4 ]
not_ok "a timer runs" no_timer
finish
is "$status" 0 "the program is whole" || explain

# It ends just when a checkpoint has been written, and the first process of its namespace ends behind it.
statuses=
for _ in 1 2 3 4; do
	later=$(printf 'ck/ckpt-%06d' $((10#$(readlink ck/latest | tr -dc 0-9) + 2)))
	restart_here --namespace && await_dir "$later"
	finish
	statuses+=" $status"
done
is "$statuses" " 0 0 0 0" "a program in a pid namespace ends with its own status, beside checkpoints at an interval" || explain

# A request meanwhile waits. The program has some memory, which is written slowly.
for fork in "" "--fork-limit 0"; do
	arena asked
	RUN_FLAGS="-i 1 --rate 512K $fork"
	launch "$victim/idle"
	ok "a checkpoint at an interval is being written${fork:+ ($fork)}" await_dir ck/ckpt-000001.tmp || explain
	trecr-ckpt --rate 1G "$sup" >path 2>ckpt.err
	is $? 0 "a request for one meanwhile gets another" || explain
	like "$(cat path)" '/ck/ckpt-[0-9]{6}$' "whose path is printed"
	finish
	is "$status" 0 "the supervisor runs on" || explain
done

for how in "-i 0" --forget-options; do
	arena off
	launch "$victim/idle" && await_dir ck/ckpt-000001 && kill -9 "$(program_of $sup)" && await -t 60 -p $sup 2>>await.err
	# shellcheck disable=SC2086
	restart_here $how
	ok "not so with $how" no_timer
	finish
	is "$status" 0 "the program is whole" || explain
done

# A run's other options stay in force, and over a second restart, too.
arena options
RUN_FLAGS="--ckpt-signal USR2 --incremental --full-every 3 --compress zstd:5"
launch "$victim/idle" catch && kill -USR2 "$sup" && await_dir ck/ckpt-000001
kill -9 "$(program_of $sup)" && await -t 60 -p $sup 2>>await.err
for n in 2 4 6; do
	restart_here && kill -USR2 "$sup"
	ok "--ckpt-signal takes checkpoints after a restart" await_dir "ck/ckpt-00000$n" || explain
	kill -USR2 "$sup" && await_dir "ck/ckpt-00000$((n + 1))"
	[ $n = 6 ] || { kill -9 "$(program_of $sup)" && await -t 60 -p $sup 2>>await.err; }
done
unlike "$(cat out)" "signal 12" "the signal is not passed on to the program"
depth() {
	trecr-inspect --json "$1" | tr -d ' \n' | grep -o '"depth":[0-9]*'
}
is "$(depth ck/ckpt-000006)" '"depth":2' "they are incremental"
is "$(depth ck/ckpt-000007)" '"depth":0' "every third is a full one"
finish
is "$status" 0 "the program is whole" || explain
restart_here -k 1 --ckpt-signal USR1 && kill -USR1 "$sup"
ok "an option of the restart counts for more" await_dir ck/ckpt-000008
kill -USR2 "$sup"
ok "the other signal is the program's again" quiet await -t 60 -p "$sup" out '^signal 12$' || explain
sweep >/dev/null

arena signal
RUN_FLAGS="--ckpt-signal USR2"
launch "$victim/idle" catch
kill -USR2 "$sup"
ok "--ckpt-signal takes a checkpoint" await_dir ck/ckpt-000001
kill -USR2 "$sup"
ok "every time" await_dir ck/ckpt-000002
finish
is "$status" 0 "the program is whole" || explain
unlike "$(cat out)" "signal 12" "the signal is not passed on to the program"

arena keep
RUN_FLAGS=
launch "$victim/idle"
for _ in 1 2 3 4 5; do checkpoint; done
# Old ones are removed when the answer is out: the next answer comes after that.
trecr-ckpt --status "$sup" >/dev/null
is "$(find ck -maxdepth 1 -name 'ckpt-*' | wc -l)" 2 "two are kept unless -k says otherwise"
is "$(readlink ck/latest)" ckpt-000005 "the newest among them"
finish
arena keep-one
RUN_FLAGS="-k 1"
launch "$victim/idle"
checkpoint
checkpoint
trecr-ckpt --status "$sup" >/dev/null
is "$(find ck -maxdepth 1 -name 'ckpt-*' -printf '%f\n')" ckpt-000002 "-k 1"
finish
# Another run in the same directory neither overwrites nor removes what it did not make.
launch "$victim/idle"
checkpoint
checkpoint
trecr-ckpt --status "$sup" >/dev/null
like "$(ls ck | xargs)" "ckpt-000002.*ckpt-000004" "checkpoints of another run are left alone"
finish
done_testing
