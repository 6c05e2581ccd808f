#!/bin/bash
# Packages: pulseaudio pulseaudio-utils. Needs: pulseaudio pacat parec
# Clients and server share memory (sealed memfds), and tell each other by eventfds.
export HOME=$PWD XDG_RUNTIME_DIR=$PWD PULSE_SERVER=unix:$PWD/p PULSE_COOKIE=$PWD/cookie
unset DISPLAY DBUS_SESSION_BUS_ADDRESS
pulseaudio -n --exit-idle-time=-1 --use-pid-file=no --disallow-exit --high-priority=no --realtime=no --log-target=file:log \
	-L "module-native-protocol-unix socket=$PWD/p auth-anonymous=1" -L "module-pipe-sink sink_name=out file=$PWD/fifo" &
server=$!
until pactl info >info 2>&1; do kill -0 $server || exit 1; sleep 0.05; done
# Some twice as fast as it is played.
perl -e 'while (sysread STDIN, $_, 4096) { syswrite STDOUT, $_; select undef, undef, undef, .01 }' <fifo >heard &
reader=$!
# A tone that can be recognized: 16-bit samples that count.
perl -e '$| = 1; for (my $k = 1; !-e "played"; $k = $k % 30000 + 1) { print pack("s<", $k) x 2 }' |
	pacat --raw --playback -d out >/dev/null 2>pacat.err &
until [ "$(stat -c %s heard)" -gt 200000 ]; do kill -0 $server || exit 1; sleep 0.05; done
echo ready
while [ ! -e go ]; do sleep 0.05; done
size=$(stat -c %s heard)
until [ "$(stat -c %s heard)" -gt $((size + 200000)) ]; do kill -0 $server || exit 1; sleep 0.05; done
: >played
kill $server
wait $server
echo "status $?"
wait $reader
# All of it in order, but for silence before and where the player was late.
perl -e 'binmode STDIN; while (read(STDIN, $_, 4)) { my ($a, $b) = unpack "s<2"; next if !$a && !$b;
	$wrong++ if $a != $b || ($last && $a != $last % 30000 + 1); $last = $a } print $wrong // 0, " wrong\n"' <heard
