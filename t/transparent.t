#!/bin/bash
# A program cannot tell that it is supervised, neither before nor after a checkpoint, and
# debuggers can attach to it at any time between.
. "$(dirname "$0")/lib.sh"

arena start
show() { # NAME COMMAND...
	local name=$1
	shift
	(
		trap '' USR2
		exec "$@" "$victim/show" an argument 5<"$top/Makefile" </dev/null >"$name" 2>&1
	)
}
show bare
# Where there is a GPU driver, there is the stub to be seen.
show under trecr-run --gpu=off -d ck --
# What is new only in one of them. Signal dispositions, mask, descriptors, mappings, limits,
# ids, environment: all have to be the same.
is "$(diff bare under | grep '^[<>]')" "" "what a program sees of the world is the same"
not_ok "the two can differ (the comparison sees something)" quiet diff -q bare /dev/null
(
	trap '' HUP
	exec trecr-run -d ck -- "$victim/show" >ignored
)
like "$(cat ignored)" "signal 1 is not at its default" "an ignored signal stays ignored"

# Until all threads of the program stand still, which they do a moment after it has said so, or has
# been continued.
stands_still() {
	until ! grep -hq '^State:.[^S]' /proc/"$inside"/task/*/status; do
		await -t 0.02 -e never 2>/dev/null
	done
}

arena between
launch "$victim/program"
inside=$(program_of "$sup")
world() {
	stands_still
	grep -E '^(State|TracerPid|Threads|Sig|Shd|Cap|NoNew|Seccomp|Umask|Uid|Gid)' \
		"/proc/$inside/status" | grep -v SigQ
	awk '{print $1, $2, $6}' "/proc/$inside/maps"
	ls -l "/proc/$inside/fd" | awk '{print $9, $10, $11}'
	for t in /proc/"$inside"/task/*; do
		echo "${t##*/}"
		sed 's/ 0x7f.*//' "$t/syscall"
	done
}
world >before
checkpoint
world >after
is "$(diff before after)" "" "a checkpoint leaves the process as it was"
checkpoint
is "$(sed -n 's/^TracerPid:\t//p' "/proc/$inside/status")" 0 "nobody traces it"
if have gdb; then
	gdb -batch -nx -p "$inside" -ex 'print $pc' -ex detach >gdb.out 2>&1
	like "$(cat gdb.out)" '\$1 = ' "gdb can attach"
fi
if have strace; then
	strace -f -qq -o strace.out -p "$inside" 2>strace.err &
	tracer=$!
	await -p $tracer "/proc/$inside/status" "^TracerPid:.$tracer\$" >/dev/null 2>&1 ||
		await -t 5 -p $tracer strace.out . >/dev/null 2>&1
	kill $tracer
	wait $tracer 2>/dev/null
	ok "strace can attach" [ -s strace.out ] || diag "$(cat strace.err)"
fi
checkpoint
ok "a checkpoint can be taken after that" [ -d "$path" ] || explain
finish
is "$status" 0 "the program is whole" || explain

# The supervisor may die at any time: the program does not notice.
arena orphan
launch "$victim/program"
inside=$(program_of "$sup")
checkpoint
kill -KILL "$sup"
wait "$sup" 2>/dev/null
ok "the program survives its supervisor" kill -0 "$inside"
is "$(sed -n 's/^TracerPid:\t//p' "/proc/$inside/status")" 0 "nobody traces it"
not_ok "it can no longer be checkpointed" checkpoint
kill -USR1 "$inside"
ok "it runs on" await -t 60 -p "$inside"
ok "and is whole" said_ok || explain
restart_here && finish
is "$status" 0 "its checkpoint can be restarted" || explain

# After a restart: no mapping, descriptor or thread more than before.
arena restarted
launch "$victim/program"
inside=$(program_of "$sup")
world >before
freeze_away
restart_here
inside=$(program_of "$sup")
world >after
# Threads are listed by name of their directory, and in a namespace that is another number.
is "$(diff <(grep -v '^[0-9]*$' before) <(grep -v '^[0-9]*$' after))" "" \
	"a restart brings back the mappings, descriptors, signals and calls, and nothing else"
finish
is "$status" 0 "the program is whole" || explain
done_testing
