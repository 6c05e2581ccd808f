#!/bin/bash
# Pseudo-terminals with both ends in the tree, and sessions on them.
. "$(dirname "$0")/lib.sh"

for v in pty pty_session; do
	cycle $v
	RESTART_FLAGS=--namespace
	scenario "$v: restarted twice in a namespace" twice "$victim/$v"
	RESTART_FLAGS=
done

have python3 || {
	skip "programs on terminals" "needs python3"
	done_testing
	exit
}

# take [closes]: the number of the program's terminal is in use before the program comes back. The lowest
# that is free is given out first, and others may use some.
cat >"$scratch/take.py" <<'PROGRAM'
import os, signal, sys
pairs = []
while len(pairs) < 500 and not (pairs and os.ttyname(pairs[-1][1]) == sys.argv[1]):
    pairs.append(os.openpty())
for master, slave in pairs if sys.argv[2:] else []:
    os.close(master)
open("taken", "w").write("yes\n")
signal.pause()
PROGRAM
take() {
	python3 "$scratch/take.py" "$(trecr-inspect --fds ck | grep -m 1 -o '/dev/pts/[0-9]*')" "$@" &
	taker=$!
}

arena taken
launch "$victim/pty_session" && freeze_away
take
await -t 60 -p $taker taken yes >/dev/null 2>>await.err
restart_here && finish && [ "$status" = 0 ] && said_ok
result $? "with its terminal's number in use: restarted with a /dev/pts of its own" || explain
like "$(cat restart.err)" '/dev/pts/[0-9]+ is in use' "which is said"
kill $taker
sweep >/dev/null

# A number whose master is closed already, but not its slave: the terminal is not to be seen.
arena hidden
launch "$victim/pty_session" && freeze_away
take closes
await -t 60 -p $taker taken yes >/dev/null 2>>await.err
restart_here && finish && [ "$status" = 0 ] && said_ok
result $? "with that number in use where nobody sees it: the same" || explain
kill $taker
sweep >/dev/null

# Another /dev/pts has other terminals of the same numbers.
arena instance
cat >open.py <<'PROGRAM'
import fcntl, os, signal
TIOCSPTLCK = 0x40045431
for i in range(40):
    fcntl.ioctl(os.open("/dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY), TIOCSPTLCK, bytes(4))
    os.open("/dev/pts/%d" % i, os.O_RDWR | os.O_NOCTTY)
open("there", "w").write("yes\n")
signal.pause()
PROGRAM
unshare --user --map-root-user --mount "$BASH" -c '
	mount -t devpts -o newinstance,ptmxmode=666 none /dev/pts && exec python3 "$0"' \
	"$PWD/open.py" 2>unshare.err &
other=$!
if await -t 60 -p $other there yes >/dev/null 2>>await.err; then
	launch "$victim/pty" && checkpoint && finish && [ "$status" = 0 ] && said_ok
	result $? "terminals of another /dev/pts are not taken for the program's" || explain
	kill $other
else
	skip "terminals of another /dev/pts" "$(tail -n 1 unshare.err)"
fi
sweep >/dev/null

# A terminal whose other end is outside, and which is no standard stream.
arena outside
"$top/t/tool/terminal.py" "$BASH" --norc -c "exec 9<>\$(tty) \
	</dev/null >out 2>err; exec trecr-run -d ck -- '$victim/idle'" >screen 2>&1 <<'STEPS' &
run await -t 60 out ready
run ! trecr-ckpt $(pgrep -P $PPID trecr-run) 2>ckpt.err
close
STEPS
wait $!
like "$(cat ckpt.err)" 'descriptor 9 .*of process .*: terminals other than the standard streams' \
	"a terminal from outside is refused"
sweep >/dev/null

# The terminal of the standard streams, opened as /dev/tty, in a session that another terminal could control.
arena left
"$top/t/tool/terminal.py" "$BASH" --norc -c "exec 9<>/dev/tty >out 2>err; exec trecr-run -d ck -- setsid -w '$victim/idle'" \
	>screen 2>&1 <<'STEPS' &
run await -t 60 out ready
run ! trecr-ckpt $(pgrep -P $PPID trecr-run) 2>ckpt.err
close
STEPS
wait $!
like "$(cat ckpt.err)" 'descriptor 9 ./dev/tty. of process .*does not control the session of the process any more .setsid.*dup' \
	"/dev/tty of a session that has been left is refused with that reason" || explain
sweep >/dev/null

# ---- programs, typed into before and after ----

keys() { # TEXT: as printf takes it
	# shellcheck disable=SC2059
	printf "$1" >input
}

shows() { # REGEX
	await -t 60 -p "$sup" screen "$1" >/dev/null 2>>await.err
}

again() {
	freeze_away && restart_detached
}

# on_terminal COMMAND...: it shows its terminal in the file screen, and is typed into by keys.
on_terminal() {
	mkfifo input
	: >screen
	launch "$BASH" -c 'echo ready; exec 3<>input; exec "$@" <&3' bash "$@"
}

shell_works() {
	keys 'echo up""per\n' && shows 'upper' &&
		keys 'stty rows 31 cols 97; sh -c "echo as\"\"leep; exec sleep 1000"\n' && shows 'asleep' && again &&
		keys '\032' && shows 'Stopped' && again &&
		keys 'jobs\n' && shows 'Stopped +sh -c' &&
		keys 'stty size; tty\n' && shows '31 97' && again &&
		keys 'kill %%1; sed -u s/^/seen-/\n' && again &&
		keys 'one\ntwo\n' && shows 'seen-two' && again &&
		keys "\003" && shows Terminated &&
		keys 'exit 7\n' && await -t 60 -p "$sup" 2>>await.err
}

await_file() { # FILE REGEX
	await -t 60 -p "$sup" "$1" "$2" >/dev/null 2>>await.err
}

vim_works() {
	keys 'ione\n\033' && keys ':w\r' && await_file text '^one$' && again &&
		keys 'itwo\n' && again && keys 'three\033:wq\r' &&
		await -t 60 -p "$sup" 2>>await.err && [ "$(tr '\n' ' ' <text)" = "one two three " ]
}

for how in "script -qfe screen -c" "$top/t/tool/typed.py input screen bash -c"; do
	name=${how%% *}
	name=${name##*/}
	have "${how%% *}" || {
		skip "a shell in $name" "no $name"
		continue
	}
	arena "$name"
	# shellcheck disable=SC2086
	on_terminal $how "env --default-signal=INT bash --norc -i" && shell_works
	result $? "a shell with jobs in $name: typed into after each restart" ||
		explain screen
	sweep >/dev/null
	have vim || {
		skip "vim in $name" "no vim"
		continue
	}
	arena "vim-$name"
	# shellcheck disable=SC2086
	on_terminal $how "vim -u NONE -N -i NONE text" && vim_works
	result $? "vim in $name: typed into after each restart" || explain screen text
	sweep >/dev/null
done

# Its server leads a session of its own and is reached through a socket; the client is on another
# terminal.
if have tmux && have script && have vim; then
	arena tmux
	on_terminal script -qfe screen -c \
		"env TERM=vt100 SHELL=/bin/sh tmux -f /dev/null -S sock new-session 'vim -u NONE -N -i NONE text'" &&
		vim_works
	result $? "vim in tmux: typed into after each restart" || explain screen text
	sweep >/dev/null
else
	skip "vim in tmux" "no tmux, script or vim"
fi
done_testing
