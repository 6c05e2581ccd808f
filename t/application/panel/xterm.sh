#!/bin/bash
# Packages: xvfb xterm x11-apps x11-utils imagemagick. Needs: Xvfb xterm xwd
# A display server without a display, a terminal on it with a shell, and a clock that draws.
export HOME=$PWD
exec {number}<>number
Xvfb -displayfd $number -screen 0 640x480x24 -nolisten tcp -noreset >xvfb.log 2>&1 &
server=$!
until read -r -t 0.1 n <number && [ -n "$n" ]; do kill -0 $server || exit 1; done
export DISPLAY=:$n
exec {number}>&-
# By files that come and go it would be told what a restart has not made undone.
mkfifo keys said
exec {said}<>said
xterm -geometry 80x24+0+0 -cr black -e bash --norc -c 'exec 3<>keys; while read -r line <&3; do [ "$line" = end ] && exit; eval "$line"; done' &
terminal=$!
xclock -update 1 -geometry 100x100+500+300 >/dev/null 2>&1 &
clock=$!
say() {
	echo "$1; echo done >said" >keys
	until read -r -t 1 <&$said; do kill -0 $terminal || exit 1; done
}
say 'x=42'
echo ready
while [ ! -e go ]; do say 'seq 40'; xwd -root -silent >/dev/null || exit 1; done
kill $clock
say 'clear; echo $x; stty size >size; for k in 1 2 3; do echo "line $k of $x"; done'
cat size
picture=
# It draws when it comes to it.
until [ "$picture" = "$(xwd -silent -root | cksum)" ]; do picture=$(xwd -silent -root | cksum); sleep 0.5; done
echo end >keys
wait $terminal
echo "xterm $?"
kill $server
wait $server
echo "server $?"
echo "$picture"
