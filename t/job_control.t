#!/bin/bash
# On a terminal: ^C, ^Z and fg, ^\, hanging up, as without trecr.
. "$(dirname "$0")/lib.sh"

have python3 || skip_all "needs python3 for a pseudo-terminal"
user() { # COMMAND...: steps from standard input
	"$top/t/tool/terminal.py" "$@" >screen 2>&1
}
arena pty
user trecr-run -d ck -- "$victim/idle" <<'STEPS'
expect ready
send \x03
STEPS
is $? 130 "^C ends the program, 130" || diag "$(cat screen)"
user trecr-run -d ck -- "$victim/idle" catch <<'STEPS'
expect ready
send \x03
expect signal 2
send \x1c
expect signal 3
send \x03
expect signal 2
close
STEPS
like "$(tr -d '\r' <screen)" 'signal 2
.*signal 3' "^C and ^\\ reach a program that catches them" || diag "$(cat screen)"
is "$(tr -d '\r' <screen | grep -c '^.*signal 2$')" 2 "each of them once"
sweep 60 >/dev/null

# The program says when it gets SIGCONT: only then has the shell handed over the terminal, and
# what is typed reaches the program.
user "$BASH" --norc -i <<STEPS
expect [\$#] 
send PS1='prompt: '; cd $PWD\n
expect prompt: 
send trecr-run -d ck -- $victim/idle catch\n
expect ready
send \x1a
expect Stopped
expect prompt: 
send trecr-ckpt -t 20 \$(pgrep -P \$\$ trecr-run) && echo taken-\$?\n
expect taken-0
send ps -o 'stat= args=' -p \$(pgrep -P \$(pgrep -P \$\$ trecr-run))\n
expect T[^ ]* +[^ ]*idle
expect prompt: 
send fg\n
expect signal 18
send \x1a
expect Stopped
expect prompt: 
send bg\n
expect signal 18
send kill -USR1 %1; wait %1; echo "end""ed-\$?"\n
expect ended-0
send exit\n
STEPS
is $? 0 "^Z, a checkpoint while stopped, fg, ^Z, bg, end" || diag "$(cat screen)"

user "$BASH" --norc -i <<STEPS
expect [\$#] 
send PS1='prompt: '; cd $PWD\n
expect prompt: 
send rm -rf ck; trecr-run -d ck -- $victim/idle catch &\n
expect ready
send trecr-ckpt -s \$!; wait; echo sa""ved\n
expect saved
send trecr-restart --pidfile up ck\n
run await up '^[0-9]+$'
send \x1a
expect Stopped
expect prompt: 
send fg\n
expect signal 18
send \x03
expect signal 2
send \x1a
expect Stopped
expect prompt: 
send bg\n
expect signal 18
send kill -TERM %1; kill -USR1 %1; wait %1; echo "end""ed-\$?"\n
expect signal 15
expect ended-0
send exit\n
STEPS
is $? 0 "the same after a restart on the terminal" || diag "$(cat screen)"
sweep >/dev/null

# A shell with jobs of its own: its groups are the terminal's foreground group in turn.
user "$BASH" --norc -i <<STEPS
expect [\$#] 
send PS1='prompt: '; cd $PWD\n
expect prompt: 
send trecr-run -d ck3 -- bash --norc -i\n
expect [\$#] 
send PS1='inner: '\n
expect inner: 
send sleep 1000\n
run pid=\$(pgrep -P \$PPID bash) && trecr-ckpt -s \$(pgrep -P \$pid trecr-run)
expect prompt: 
send trecr-restart --pidfile up3 ck3\n
run await up3 '^[0-9]+$'
send \x03
expect inner: 
send echo "sta""tus-\$?"\n
expect status-130
send exit 5\n
expect prompt: 
send echo "end""ed-\$?"\n
expect ended-5
send exit\n
STEPS
is $? 0 "a shell with jobs: the foreground group is put back" || diag "$(cat screen)"
sweep >/dev/null

# A program that reads the terminal does so through its supervisor's job.
user trecr-run -d ck2 -- cat <<'STEPS'
send typed line\n
expect typed line\r\n(.|\n)*typed line
send \x04
STEPS
is $? 0 "a program reads what is typed, and its end" || diag "$(cat screen)"
done_testing
