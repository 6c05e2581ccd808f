#!/bin/bash
# Programs that set up the terminal they are started on: on another one after a restart they have it
# as they had it, and draw themselves anew; when they end or stop, it is the shell's again.
. "$(dirname "$0")/lib.sh"

have python3 || skip_all "needs python3 for pseudo-terminals"
user() { # [-s SIZE] COMMAND...: steps from standard input
	"$top/t/tool/terminal.py" "$@" >>screen 2>&1
}

# on SIZE COMMAND: by a shell that leaves the terminal alone, whose settings go into FILE and FILE.end.
on() { # FILE SIZE COMMAND
	TERM=xterm user -s "$2" "$BASH" --norc -c "stty ${STTY:-sane}; stty -g >$1; $3
		echo \$? >$1.status; stty -g >$1.end"
}
# The supervisor of a program that such a shell has started, as a command for a step.
# shellcheck disable=SC2016
shells_child='$(pgrep -P $(pgrep -P $PPID bash) trecr-r)'
# In a namespace, its init comes between.
program="\$(pgrep -P $shells_child python3 || pgrep -P \$(pgrep -P $shells_child trecr-init) python3)"
# shellcheck disable=SC2016
now='stty -g <$TTY'

# save COMMAND READY: on a terminal of 24 rows whose shell has another idea of the erase character.
save() {
	: >screen
	rm -rf ck
	STTY="sane erase ^H" on first 24x80 "trecr-run -d ck -- $1" <<-STEPS
		expect $2
		run $now >saved
		run trecr-ckpt -t 60 -s $shells_child 2>ckpt.err >path
	STEPS
}

prompt='expect prompt: '
# Settings that readline does not show.
shown='stty -a | tr ";" "\n" | grep -E "icanon|erase = " | tr "\n" " "\n'

arena set_up
save "$top/t/tool/screen.py" "drawn 24x80"
is "$(cat first.end)" "$(cat first)" \
	"a checkpoint that ends the program gives the terminal back as it was" || explain screen
isnt "$(cat saved)" "$(cat first)" "which the program had set up"
on second 31x97 "trecr-restart --pidfile up ck" <<STEPS
expect drawn 31x97
run $now >restarted
send k
expect key k
send f
expect open: blocking non-blocking blocking /dev/
send q
STEPS
is "$(cat restarted)" "$(cat saved)" "on another terminal it has all settings that it had" ||
	explain screen
is "$(cat second.status)" 7 "draws itself for the other size, and is typed into" ||
	explain screen
is "$(cat second.end)" "$(cat second)" "and its end leaves that terminal as it was"
on third 24x80 "trecr-restart --pidfile up ck" <<STEPS
expect drawn 25x80(.|\n)*drawn 24x80
run await -p $shells_child up .
run $now >restarted
run kill -KILL $program
STEPS
is "$(cat third.end) $(cat third.status)" "$(cat third) 137" \
	"drawn as a whole on a terminal of the same size; killed: the same" || explain screen

# What belongs to a shell it is not to compete for.
mkfifo nobody
exec 7<>nobody
(setsid trecr-restart --pidfile up ck <nobody >other 2>restart.err 7>&- &)
ok "where there is no terminal, it resumes" quiet await -t 60 up .
like "$(cat restart.err)" "program had changed the settings of its terminal, .* none here" "which is said"
trecr-ckpt -s "$(cat up)" >path 2>ckpt.err
exec 7>&-
on fourth 24x80 "trecr-restart -D ck 2>&1" </dev/null
like "$(cat screen)" "restart it without --detach" \
	"it does not share the terminal of a shell with that (--detach)"
user -s 28x80 "$BASH" --norc -c "trecr-restart --pidfile up ck" <<STEPS
expect drawn 28x80
run $now >restarted
send q
STEPS
is "$(cat restarted)" "$(cat saved)" "saved where there was none: its settings are still known" ||
	explain screen restart.err
sweep >/dev/null

arena shell
save "$top/t/tool/screen.py" "drawn 24x80"
user -s 30x90 "$BASH" --norc -i <<STEPS
expect [\$#] 
send set -b; PS1='prom''pt: '; cd $PWD\n
$prompt
send trecr-restart --pidfile up ck &\n
run await up '^[0-9]+$'
run kill -TTIN $program
expect Stopped
send \n
$prompt
send $shown
expect erase = ..(.|\n)* icanon
$prompt
send fg\n
expect drawn 30x90
run $now >foreground
send k
expect key k
run kill -STOP $program
expect Stopped
$prompt
send $shown
expect erase = ..(.|\n)* icanon
$prompt
send fg\n
run until [ "\$($now)" = "\$(cat saved)" ]; do :; done
send k
expect key k
send q
$prompt
send $shown
expect erase = ..(.|\n)* icanon
send exit\n
STEPS
is $? 0 "in the background it leaves the terminal to the shell; fg, stop, fg" || explain screen
is "$(cat foreground 2>/dev/null)" "$(cat saved)" "in the foreground it has its settings"
sweep >/dev/null

# ---- programs of others ----

# elsewhere NAME READY STEPS... COMMAND: saved when it shows READY; elsewhere it does STEPS.
elsewhere() { # NAME COMMAND READY STEPS
	local name=$1 size
	have "${2%% *}" || {
		skip "$name" "not installed"
		return
	}
	arena "$name"
	seq -f 'line %g' 200 >text
	save "$2" "$3"
	for size in 24x80 32x99; do
		on second $size "trecr-restart --pidfile up ck" <<<"$4"
		is "$? $(cat second.end)" "0 $(cat second)" "$name: on another terminal of $size" ||
			explain screen
	done
	is "$(cat first.end)" "$(cat first)" "$name: ended by a checkpoint" || explain screen
	[ -z "${EMULATOR:-}" ] || set_up_anew "$name" "$3" "${SETTLED:-$3}"
	sweep >/dev/null
}

# What a program has told the terminal emulator it tells it again when it is stopped and continued. One ^Z
# may be lost, without trecr too: curses ignores SIGTSTP while it draws, and less jumps out of the
# handlers of both where it comes together with a SIGWINCH.
set_up_anew() { # NAME READY SETTLED
	user "$BASH" --norc -i <<-STEPS
		send PS1='prom''pt: '; cd $PWD\n
		$prompt
		send trecr-restart ck\n
		expect $3
		insist \x1a Stopped
		$prompt
		send fg\n
		expect $EMULATOR(.|\n)*$2
		send q
		$prompt
		send exit\n
	STEPS
	is $? 0 "$1: stopped and continued, it sets up the terminal emulator" || explain screen
}

# The alternate screen
EMULATOR='\[\?1049h' SETTLED='line 24(.|\n)*line 23' elsewhere less "less text" "line 23" "expect line 1\r\n(.|\n)*line 2\r\n(.|\n)*line 23
send G
expect line 200
send q"
# Vim writes only what differs from the line that was there.
elsewhere vim "vim -n -u NONE -N -i NONE text" "line 23" "expect line 1\r\n(.|\n)*line 2\r\n(.|\n)*line 23
send G:echo 1000+line('.')\r
expect 1200
send :q!\r"
# Python lets the terminal handle keys but while it waits for a line: where there is no prompt yet, ^D
# is none.
elsewhere python "python3 -q" ">>> " "send 1+41\n
expect 42(.|\n)*>>> 
send \x04"
elsewhere node "node" "> " "expect > 
send 1+41\n
expect 42
send .exit\n"
if have python3 && python3 -c 'import curses' 2>/dev/null; then
	cat >"$scratch/panel.py" <<-'PROGRAM'
		import curses
		def main(screen):
		    while True:
		        screen.erase()
		        screen.addstr(2, 3, "drawn %d" % curses.LINES)
		        screen.refresh()
		        if screen.getch() == ord("q"):
		            return
		        curses.update_lines_cols()
		curses.wrapper(main)
	PROGRAM
	EMULATOR='\[\?1049h' elsewhere curses "python3 $scratch/panel.py" "drawn 24" "expect drawn
send q"
else
	skip "curses" "Python has none"
fi
done_testing
