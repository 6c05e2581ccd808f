#!/bin/bash
# Work that takes longer than a second shows on a terminal, and only there. strace makes it long.
. "$(dirname "$0")/lib.sh"

have strace || skip_all "no strace"
have python3 || skip_all "no python3"

# Each of these calls takes a while: ten of them are enough. A restart, which looks at all
# processes, makes hundreds.
slowly="strace -qq -o strace.out -e trace=openat,pread64,close
	-e inject=openat,pread64,close:delay_exit=150000"
less_slowly=${slowly/=150000/=30000}

slow_answer="strace -qq -o strace.out -e trace=recvfrom -e inject=recvfrom:delay_enter=1500000"

arena slow
launch "$victim/idle"
"$top/t/tool/terminal.py" $slow_answer trecr-ckpt "$sup" >screen <<'STEPS'
expect trecr-ckpt: checkpointing, [0-9]+ s
expect ckpt-000001
STEPS
is $? 0 "trecr-ckpt" || diag "$(cat screen)"
$slow_answer trecr-ckpt "$sup" >path 2>err.plain
is "$(told err.plain)" "" "says nothing where there is no terminal"
freeze_away

"$top/t/tool/terminal.py" $slowly trecr-inspect --verify ck >screen <<'STEPS'
expect trecr-inspect: checking, [0-9]+ s
expect good
STEPS
is $? 0 "trecr-inspect --verify" || diag "$(cat screen)"
like "$(cat screen)" $'\e\\[K[^\n]*ckpt-[0-9]*: good' "which clears it away before it prints"

"$top/t/tool/terminal.py" $less_slowly trecr-restart --pidfile up ck >screen <<'STEPS'
expect trecr-restart: restarting, [0-9]+ s
run await up '^[0-9]+$'
run bash -c 'kill -USR1 $(cat up)'
STEPS
is $? 0 "trecr-restart" || diag "$(cat screen)"
tail -n 1 out | grep -qx ok
result $? "and the program runs" || explain
sweep >/dev/null
done_testing
