#!/bin/bash
# The standard streams after a restart: files are opened again, pipes and terminals are those
# of trecr-restart.
. "$(dirname "$0")/lib.sh"

# A filter between two pipes: a restart gives it new ones.
arena pipes
mkfifo in
cat in | {
	echo $BASHPID >sup.pid
	exec trecr-run -d ck -- cat 2>err
} | cat >first &
exec 7>in
echo one >&7
ok "what goes in comes out" quiet await first '^one$'
sup=$(cat sup.pid)
checkpoint -s && await -p "$sup"
if is $? 0 "checkpoint of a program between two pipes of others"; then
	exec 7>&-
	printf 'two\nthree\n' | timeout -k 1 60 trecr-restart ck 2>restart.err | cat >second
	is "${PIPESTATUS[1]}" 0 "restart with other pipes" || explain
	is "$(cat second)" "two
three" "it reads from and writes to those of trecr-restart"
	is "$(cat first)" "one" "and no longer to the old ones"
else
	explain
fi
exec 7>&-
sweep >/dev/null

# A named pipe as a standard stream is one of these too.
arena named
mkfifo in
exec 7<>in
trecr-run -d ck -- cat <in >out 2>err 7>&- &
sup=$!
echo one >&7
await -p $sup out '^one$' >/dev/null
checkpoint -s && await -p "$sup"
if is $? 0 "checkpoint of a program that reads a named pipe"; then
	printf 'two\n' | timeout -k 1 60 trecr-restart ck 2>restart.err
	is $? 0 "restart with another standard input" || explain
	is "$(cat out)" "one
two" "it reads from that"
else
	explain
fi
exec 7>&-
sweep >/dev/null

arena file
launch "$victim/program"
freeze_away
printf 'someone else was here\n' >>out
restart_here
finish
is "$status" 0 "restart with a file that has grown" || explain
like "$(cat restart.err)" "$PWD/out.*grown" "a notice says so"
is "$(cat out)" "ready
ok
eone else was here" "the program continues where it was, and nothing is cut off"

arena rollback
launch "$victim/program"
freeze_away
printf 'written after the checkpoint\n' >>out
restart_here --rollback-files
finish
is "$status" 0 "--rollback-files" || explain
is "$(cat out)" "ready
ok" "the file is as it was, and continues from there"
is "$(cat out.trecr-tail 2>/dev/null)" "written after the checkpoint" "the tail is moved aside"

arena damaged
launch "$victim/program"
freeze_away
printf 'written after the checkpoint\n' >>out
cp out before
for f in ck/ckpt-000001/*; do
	[ "${f##*/}" = job ] || edit-image "$f" flip 4100
done
timeout -k 1 60 trecr-restart --rollback-files ck </dev/null >restart.out 2>restart.err
is $? 125 "--rollback-files with a damaged image"
ok "cuts nothing" cmp before out
ok "and moves nothing aside" [ ! -e out.trecr-tail ]

arena again
launch "$victim/program"
freeze_away
printf 'first tail\n' >>out
restart_here --rollback-files
kill -KILL "$(program_of "$sup")"
await -p "$sup"
printf 'second tail\n' >>out
restart_here --rollback-files
finish
is "$status" 0 "--rollback-files a second time" || explain
like "$(cat out.trecr-tail*)" "first tail" "does not destroy what the first one moved aside"
like "$(cat out.trecr-tail*)" "second tail" "and keeps the second"

arena truncated
launch "$victim/program"
freeze_away
: >out
timeout -k 1 60 trecr-restart ck </dev/null >restart.out 2>restart.err
is $? 125 "a file that has become shorter is refused"
like "$(cat restart.err)" "^trecr-restart: .*$PWD/out.*shorter" "by its name"
is "$(cat out)" "" "and nothing is written"

arena vanished
launch "$victim/idle" 8>>offsets
freeze_away
rm offsets
timeout -k 1 60 trecr-restart ck </dev/null >restart.out 2>restart.err
is $? 125 "a file that has vanished is refused"
like "$(cat restart.err)" "^trecr-restart: .*$PWD/offsets.*No such file" "by its name and the reason"

# A program whose output goes to a file opened for appending.
arena append
trecr-run -d ck -- "$victim/program" </dev/null >>out 2>err &
sup=$!
await -p $sup out ready >/dev/null
freeze_away
echo between >>out
trecr-restart --pidfile pidfile ck </dev/null >other 2>restart.err &
sup=$!
await -p $sup pidfile . >/dev/null
finish
is "$(cat out)" "ready
between
ok" "O_APPEND writes behind everything" || explain
is "$(cat other)" "" "the output of trecr-restart itself is not used"
done_testing
