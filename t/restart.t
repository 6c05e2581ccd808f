#!/bin/bash
# trecr-restart: foreground, -D, --pidfile, --verify, which checkpoint, again and again.
. "$(dirname "$0")/lib.sh"

arena foreground
launch "$victim/program"
checkpoint
first=$path
freeze_away
restart_here
is "$(cat pidfile)" "$sup" "--pidfile has the supervisor's process id"
finish
is "$status" 0 "the exit status is the program's" || explain
is "$(tail -n 1 out)" ok "the newest checkpoint of a directory"
printf 'ready\n' >out
IMAGE=$first
restart_here
unset IMAGE
finish
is "$status" 0 "one checkpoint by its own name" || explain
is "$(tail -n 1 out)" ok "the program is whole"
for i in 1 2 3; do
	printf 'ready\n' >out
	restart_here && finish
	is "$status" 0 "the same checkpoint once more ($i)"
done

arena stages
launch "$victim/idle" && freeze_away
restart_here -v
finish
is "$(sed -n 's/^trecr-restart: process [0-9]* (idle): //p' restart.err | tr '\n' ' ')" \
	"made placed executed mapped threads registers let go " "-v tells how far a process has come" || explain

# Kernels such as 5.10 show such an I/O priority of threads that have set none, and take it from nobody.
arena priority
launch "$victim/idle" && freeze_away && program=$(find "$path" -type f ! -name job) &&
	edit-image "$program" io-priority 4 && restart_here
finish
is "$status" 0 "an I/O priority without a class" || explain
unlike "$(cat restart.err)" 'I/O priority' "is none"

arena exits
launch "$victim/idle" && freeze_away
restart_here
kill -TERM $sup
await -p $sup && wait $sup 2>/dev/null
is $? 143 "a program that ends by SIGTERM after a restart"
restart_here --verify
is $? 0 "--verify of a good checkpoint" || explain
finish
is "$status" 0 "runs it"

arena detached
launch "$victim/program" && freeze_away
# A shell that asks for the pid must get it while the program runs on.
timeout -k 1 60 "$BASH" -c 'pid=$(trecr-restart -D ck 2>restart.err </dev/null); echo "$pid" >pid.out'
is $? 0 "pid=\$(trecr-restart -D) comes back while the program runs"
sup=$(cat pid.out 2>/dev/null)
like "${sup:-}" '^[0-9]+$' "-D prints the supervisor's process id"
if [ -n "${sup:-}" ]; then
	is "$(ps -o tty= -p "$sup" | tr -d ' ')" '?' "it has no terminal"
	isnt "$(ps -o sid= -p "$sup" | tr -d ' ')" "$(ps -o sid= -p $$ | tr -d ' ')" "and a session of its own"
	kill -USR1 "$sup"
	ok "the program runs on to its end" await -t 60 -p "$sup"
	is "$(tail -n 1 out)" ok "and is whole"
fi
sweep >/dev/null

arena wrong
trecr-restart /no/such/place 2>err
is $? 125 "a directory that is not there"
like "$(cat err)" '^trecr-restart: cannot .*: .*No such file' "it is named"
mkdir empty
trecr-restart empty 2>err
is $? 125 "a directory without checkpoints"
for wrong in "" "a b" "--nonsense a" "--pidfile"; do
	# shellcheck disable=SC2086
	trecr-restart $wrong >restart.out 2>err
	is $? 125 "trecr-restart $wrong"
	like "$(cat err)" '^trecr-restart: ' "says what is wrong"
done
launch "$victim/idle" && freeze_away
trecr-restart --pidfile /no/such/dir/file ck 2>err </dev/null
is $? 125 "a pidfile that cannot be made"
echo old >pid
trecr-restart --pidfile pid empty 2>err </dev/null
is "$(cat pid; echo pid*)" "old
pid" "a restart that fails leaves a pidfile as it was, and nothing beside it"
# What a killed one has left has our process id in its name; another restart's file stays.
ok "a pidfile whose temporary name is taken" eval '
	(: >pidfile.$BASHPID && exec trecr-restart --pidfile pidfile ck </dev/null >>out 2>restart.err) &
	sup=$! && await -t 60 -p $sup pidfile "^$sup$" >/dev/null' || explain
echo other >pidfile.new && mv pidfile.new pidfile
finish
is "$(cat pidfile)" other "another file that has taken its name stays" || explain
rm -f pidfile
exec 7> >(cat >restart.err)
ok "one that cannot be written" eval '
	(ulimit -f 0 && exec trecr-restart --pidfile pidfile ck </dev/null >>out 2>&7 7>&-) &
	sup=$! && await -t 60 -p $sup restart.err "^trecr-restart: .*pidfile.*File too large" >/dev/null' || explain
exec 7>&-
is "$(echo pidfile*)" "pidfile*" "leaves nothing"
kill -KILL "$(program_of "$sup")"
await -t 60 -p "$sup"
trecr-restart -D --verify /no/such/place >restart.out 2>err
is $? 125 "-D reports a failure"
is "$(cat restart.out)" "" "and prints no process id"

# The name is the user's, the place may have changed: a checkpoint can be moved.
mv ck moved
IMAGE=moved
ok "a directory of checkpoints may be moved" restart_here || explain
unset IMAGE
path=$(trecr-ckpt $sup 2>ckpt.err)
like "$path" "^$PWD/moved/ckpt-000002" "and the next checkpoint goes there"
kill -KILL "$(program_of $sup)"
await -p $sup

# While the program runs there is no second one of it, which would use the same files.
refused() { # NAME REGEX [COMMAND...]
	"${@:3}" trecr-restart ck </dev/null >restart.out 2>restart.err
	is $? 125 "$1: not brought back"
	like "$(cat restart.err)" "^trecr-restart: cannot restart ck: $2: end it first, or .*--force" "$1: named"
}
arena alone
launch "$victim/program" && checkpoint
program=$(program_of "$sup")
refused "the program runs" "process $program \(program\) of the program is alive"
# Its supervisor has gone, it has not.
kill -KILL "$sup" && await -t 60 -p "$sup"
refused "its supervisor was killed" "process $program \(program\) of the program is alive"
kill -KILL "$program"
restart_here
refused "restarted" "process [0-9]+ \(program\) of the program is alive"
kill -KILL "$(program_of "$sup")"
await -t 60 -p "$sup"
restart_here --namespace
refused "in a namespace" "process $(program_of "$sup") \(program\) of the program is alive"
finish
ok "killed, with its supervisor, it can be brought back at once" eval 'restart_here &&
	kill -KILL "$sup" "$(program_of "$sup")" && restart_here && finish && [ "$status" = 0 ]' || explain

# Its supervisor is alive on another machine that has the same files. Pid namespaces do not see
# each other's processes, either.
if am_root && unshare --pid --mount --fork true 2>/dev/null; then
	arena elsewhere
	machine="unshare --pid --mount --fork --mount-proc --kill-child"
	$machine "$BASH" -c 'trecr-run -d ck -- "$1" </dev/null >out 2>err & echo $! >inside
		await -t 60 -p $! out "^ready$" >/dev/null && trecr-ckpt $! >/dev/null 2>ckpt.err; : >up; wait' - "$victim/idle" &
	other=$!
	await -t 60 -p $other -e up
	refused "its supervisor is elsewhere" "$PWD/ck is in use by a supervisor \(process $(cat inside) on $(uname -n)\)" $machine
	kill -KILL $other
	wait $other
fi

# --force: the second cannot have the same process id, so it gets a namespace, nor write its
# checkpoints to where the first does. Both run.
arena twins
launch "$victim/program" && freeze_away
restart_here
a=$sup
mv pidfile pidfile.a
restart_here --force
like "$(cat restart.err)" "checkpoints of it will fail: $PWD/ck is in use by a supervisor \(process $a on .*--dir" \
	"a second one is told where it cannot save"
b=$sup
isnt "$a" "$b" "two restarts of one checkpoint at once"
sup=$a
finish
is "$status" 0 "the first ends well" || explain
sup=$b
finish
is "$status" 0 "the second ends well" || explain
leaves_nothing "nothing is left behind"

# No system error is taken for an id that is in use, which a namespace would help against.
arena replaced
launch "$victim/unix_names" && freeze_away || explain
find . -type s | while read -r name; do rm "$name" && echo a file >"$name"; done
timeout -k 1 60 trecr-restart ck </dev/null >restart.out 2>restart.err
is $? 125 "where a file is in the place of a socket" || explain
like "$(cat restart.err)" 'cannot bind .*: File exists$' "that is said"
unlike "$(cat restart.err)" 'id was taken' "and nothing else"

# trecr's own threads do with the stacks that they ask for.
ulimit -S -s 128
scenario "with a stack of 128 KiB: restarted twice in a row" twice "$victim/threads"
done_testing
