#!/bin/bash
# Packages: screen. Needs: screen
# A detached session with two windows; its FIFO or socket is in a directory of its own.
export HOME=$PWD SHELL=/bin/sh TERM=xterm SCREENDIR=$PWD/s
mkdir -m 700 s
echo 'shell /bin/sh' >conf
screen -c conf -D -m -S one &
server=$!
ask() {
	screen -S one "$@"
}
until ask -Q windows >/dev/null 2>&1; do kill -0 $server || exit 1; sleep 0.02; done
ask -X screen -t two
ask -p 0 -X stuff $'x=$((6 * 7)); cat >written\nfirst\n'
until grep -q first written 2>/dev/null; do sleep 0.02; done
echo ready
while [ ! -e go ]; do ask -p 1 -X stuff $': nothing\n'; sleep 0.05; done
ask -p 0 -X stuff $'second\n\004'
ask -p 0 -X stuff $'echo "x is $x of $(stty size)" >shown\n'
until grep -q . shown 2>/dev/null; do sleep 0.02; done
cat written shown
ask -Q windows
echo
ask -X quit
wait $server
echo "status $?"
