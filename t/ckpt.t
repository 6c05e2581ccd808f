#!/bin/bash
# trecr-ckpt: what it prints, -s, -t, --status, --json.
. "$(dirname "$0")/lib.sh"

arena plain
launch "$victim/program"
inside=$(program_of "$sup")
printed=$(trecr-ckpt "$inside" 2>ckpt.err)
is $? 0 "the program's own process id will do" || explain
like "$printed" "^$PWD/ck/ckpt-000001\$" "the path is alone on standard output"
is "$(told)" "" "and nothing on standard error"
is "$(ls "$printed" | xargs)" "$inside job" "one file for the job, one for the process"
printed=$(trecr-ckpt "$sup")
like "$printed" "ckpt-000002\$" "the supervisor's will do too"
is "$(readlink ck/latest)" ckpt-000002 "latest is moved on"
ok "the first is kept" [ -d ck/ckpt-000001 ]
status_text=$(trecr-ckpt --status "$sup")
is $? 0 "--status"
like "$status_text" "$inside" "it has the program's process id"
like "$status_text" "ck/ckpt-000002" "and the last checkpoint"
like "$status_text" "2 done" "and how many there were"
json=$(trecr-ckpt --status --json "$sup")
ok "--json is JSON" python3 -c 'import json, sys
d = json.loads(sys.argv[1])
assert d["pid"] == int(sys.argv[2]) and d["supervisor"] == int(sys.argv[3])
assert d["last"]["path"].endswith("ckpt-000002") and d["last"]["pause_ms"] > 0' "$json" "$inside" "$sup"
is "$(ls ck | grep -c ckpt-)" 2 "--status takes no checkpoint"
path=$(trecr-ckpt -s "$sup")
is $? 0 "-s"
await -t 60 -p "$sup" && wait "$sup" 2>/dev/null
is $? 137 "-s ends the program, and its supervisor says by which signal"
ok "the checkpoint is there" [ -f "$path/job" ]
not_ok "the program has ended" quiet kill -0 "$inside"
is "$(cat out)" ready "it did not go on before it ended"

# More than an answer of the supervisor has room for.
arena arguments
# shellcheck disable=SC2046
launch sh -c 'exec "$0" count' "$victim/idle" $(perl -e 'print "y" x 100000, " " for 1 .. 4')
status_text=$(trecr-ckpt --status "$sup" 2>status.err)
is $? 0 "--status of a program with long arguments" || explain status.err
like "$status_text" "yyy [.][.][.]" "shows the beginning of its command"
finish
sweep >/dev/null

ended=$(python3 -c 'import os, subprocess
pid = os.fork() or os._exit(0)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
subprocess.run(["trecr-ckpt", str(pid)], stderr=subprocess.STDOUT)')
like "$ended" 'process [0-9]+ has ended$' "a process that has ended is not called unsupervised"

for wrong in "" "abc" "0" "-5" "1 2" "-t 0 1" "-t x 1" "--nonsense 1" "-s --status 1"; do
	# shellcheck disable=SC2086
	trecr-ckpt $wrong >out 2>err
	isnt $? 0 "trecr-ckpt $wrong fails"
	like "$(cat err)" '^trecr-ckpt: ' "and says why"
	is "$(cat out)" "" "on standard error"
done

# What takes its time to end has ended before the supervisor says that all is done.
arena ended
launch bash -c "trap '' USR1; $victim/idle megabytes 1000 & echo \$! >child; wait; wait"
freeze_away
is $? 0 "a parent with a large child is saved and ended" || explain
not_ok "and the child is gone by then" test -e "/proc/$(cat child)"
sweep >/dev/null

# A program is ended only when it could be brought back.
arena checked
cp "$victim/idle" .
launch ./idle
chmod -x idle
not_ok "what could not be restarted is not ended" checkpoint -s
like "$(cat ckpt.err)" "the checkpoint $PWD/ck/ckpt-000001 is complete, but it could not be restarted here, so the program resumes: cannot execute the program's file $PWD/idle: Permission denied" \
	"which is said"
chmod +x idle
checkpoint -s
ok "when it can be it is" await -t 60 -p "$sup"
like "$path" ckpt-000002 "the checkpoint was kept"
restart_here && finish && [ "$status" = 0 ] && said_ok
result $? "and it is brought back" || explain
sweep >/dev/null

# Nor where processes cannot get their ids again.
if am_root && unshare --user --map-root-user true 2>/dev/null && have setpriv; then
	arena without
	unshare --user --map-root-user "$BASH" -c 'echo 0 >/proc/sys/user/max_user_namespaces &&
		exec setpriv --bounding-set -all --inh-caps -all -- trecr-run -d ck -- "$1"' - \
		"$victim/idle" </dev/null >out 2>err &
	sup=$!
	await -t 60 -p $sup out '^ready$' >/dev/null
	not_ok "what could not have its ids again is not ended" checkpoint -s
	like "$(cat ckpt.err)" "could not be restarted here, .*cannot create a new user, pid and mount namespace" \
		"which is said, too"
	finish && said_ok
	result $? "the program runs on" || explain
	sweep >/dev/null
fi

# A request that finds the program at its end.
arena late
launch "$victim/idle"
program=$(program_of "$sup")
kill -STOP "$sup"
kill -KILL "$program"
checkpoint
is "$? $(cat ckpt.err)" "1 trecr-ckpt: cannot checkpoint: the program has ended" "a program that has ended is called so"
sweep >/dev/null

# A time limit that cannot be kept: the program is unharmed and no attempt is left behind.
arena limit
launch "$victim/idle" megabytes 1500
checkpoint
is $? 0 "without a time limit it is done" || explain
trecr-ckpt -t 0.0001 "$sup" >out2 2>err2
isnt $? 0 "a time limit that is no whole number, or too short, fails"
is "$(cat out2)" "" "and prints no path"
is "$(find ck -name '*.tmp' | wc -l)" 0 "nothing is left of it"
finish
is "$status" 0 "and the program is unharmed" || explain
done_testing
