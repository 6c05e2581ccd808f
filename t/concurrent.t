#!/bin/bash
# More than one at a time, and requests for processes that are not there to be checkpointed.
. "$(dirname "$0")/lib.sh"

arena two
launch "$victim/idle" count 64
for i in 1 2 3 4; do
	trecr-ckpt "$sup" >path.$i 2>err.$i &
	requests[i]=$!
done
done_ones=0
bad=
for i in 1 2 3 4; do
	if wait "${requests[i]}"; then
		done_ones=$((done_ones + 1))
	else
		[[ $(told err.$i) =~ ^trecr-ckpt:\ cannot\ .+:\ .+ ]] || bad+=" $i:$(cat err.$i)"
	fi
done
ok "nothing is left unfinished" nothing_unfinished
for path in $(cat path.?); do
	# The first ones may have been removed, as there are newer ones.
	[ -f "$path/job" ] || [ ! -e "$path" ] || bad+=" $path"
done
is "$bad" "" "four requests at once: each gets a checkpoint or a reason"
ok "at least one gets a checkpoint" [ $done_ones -ge 1 ]
ok "the newest is whole" quiet trecr-inspect --verify ck
launch2=$sup
# A second supervisor may not write into the same directory.
trecr-run -d ck -- "$victim/idle" </dev/null >out.2 2>err.2 &
sup=$!
await -p $sup out.2 ready >/dev/null
checkpoint
isnt $? 0 "a second supervisor with the same directory is refused"
like "$(told)" "$PWD/ck" "which is named"
finish
sup=$launch2
finish
is "$status" 0 "the program is whole" || explain

arena none
"$victim/idle" </dev/null >out 2>err &
alone=$!
await -p $alone out ready >/dev/null
trecr-ckpt $alone >path 2>ckpt.err
isnt $? 0 "a process without a supervisor"
like "$(told)" "^trecr-ckpt: cannot .*$alone.*(supervis|trecr-run)" "is said to have none"
kill -USR1 $alone
wait $alone
is $? 0 "and is unharmed"
trecr-ckpt $alone >path 2>ckpt.err
isnt $? 0 "a process that is gone"
like "$(told)" "^trecr-ckpt: cannot .*$alone.*(No such process|not running)|no process $alone" "is said to be gone"
trecr-ckpt 1 >path 2>ckpt.err
isnt $? 0 "process 1"
like "$(told)" "^trecr-ckpt: cannot " "has a reason too"

arena traced
launch "$victim/idle" count
inside=$(program_of "$sup")
if have strace; then
	strace -f -qq -o strace.out -p "$inside" 2>strace.err &
	tracer=$!
	until grep -q "^TracerPid:.$tracer\$" /proc/"$inside"/task/*/status 2>/dev/null || ! kill -0 $tracer; do
		await -t 0.05 -p $tracer /dev/null never >/dev/null 2>&1
	done
	checkpoint
	isnt $? 0 "a program that strace is attached to"
	like "$(told)" "^trecr-ckpt: cannot .*traced by process $tracer \\(strace\\).*detach.*under trecr-run" "is refused, and why is said, and what to do"
	ok "strace is still attached" kill -0 $tracer
	kill $tracer
	wait $tracer 2>/dev/null
	: >ckpt.err
	checkpoint
	is $? 0 "without strace it works" || explain
else
	skip "a traced program" "no strace"
fi
finish
is "$status" 0 "the program is whole" || explain

arena undumpable
launch "$victim/idle" undumpable
inside=$(program_of "$sup")
checkpoint
worked=$?
if am_root; then
	is $worked 0 "root checkpoints a program that is not dumpable" || explain
	freeze_away
	restart_here
	finish
	is "$status" 0 "it comes back" || explain
else
	isnt $worked 0 "a program that is not dumpable is refused"
	like "$(told)" "^trecr-ckpt: cannot .*(permitted|Permission|dumpable)" "and why is said"
	finish
	is "$status" 0 "it runs on" || explain
fi

# Other users: nobody may not checkpoint what is root's.
arena users
if am_root && have setpriv; then
	launch "$victim/idle"
	chmod 755 "$scratch" .
	$as_nobody "$build/trecr-ckpt" "$sup" >path 2>ckpt.err
	isnt $? 0 "a program of another user"
	like "$(told)" "^trecr-ckpt: cannot .*(permitted|ermission|denied|user)" "is refused"
	finish
	is "$status" 0 "and unharmed" || explain
else
	skip "a program of another user" "needs root"
fi

# A program that ends by itself while it is being checkpointed.
arena ending
bad=
for ((i = 0; i < 10; i++)); do
	launch "$victim/idle" count 32 || break
	trecr-ckpt "$sup" >path 2>ckpt.err &
	request=$!
	kill -USR1 "$sup"
	await -t 60 -p $request 2>/dev/null || bad+=" $i:hangs"
	if ! wait $request; then
		[[ $(told) =~ ^trecr-ckpt:\ cannot\ .+:\ .+ ]] || bad+=" $i:$(told)"
	fi
	await -t 60 -p "$sup" 2>/dev/null || bad+=" $i:supervisor-hangs"
	wait "$sup"
	status=$?
	[ $status = 0 ] && said_ok || bad+=" $i:status-$status($(tail -n 1 out))"
	rm -rf ck
done
is "$bad" "" "a program that ends during its checkpoint (10 times)"
done_testing
