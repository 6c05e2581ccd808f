#!/bin/bash
# Packages: weston wayland-utils. Needs: weston weston-terminal weston-simple-shm wayland-info
# A compositor without a screen, a terminal with a shell in it and a program that draws all the time, in memory that they share.
export XDG_RUNTIME_DIR=$PWD HOME=$PWD LC_ALL=C.UTF-8 XDG_CONFIG_HOME=$PWD
chmod 700 .
printf '[terminal]\nfont-size=10\n' >weston.ini
cat >inside.sh <<'END'
#!/bin/sh
n=0
echo $n >count
while [ ! -e go ]; do n=$((n + 1)); echo "line $n"; [ $((n % 5)) = 0 ] && echo $n >count.new && mv count.new count; sleep 0.02; done
stty size | sed 's/[0-9]*/number/g' >inside
tty | sed 's/[0-9]*$//' >>inside
END
chmod +x inside.sh
weston --backend=headless-backend.so --socket=w --idle-time=0 --width=640 --height=480 --log="$PWD/weston.log" >weston.out 2>&1 &
server=$!
export WAYLAND_DISPLAY=w
until [ -S w ]; do kill -0 $server || exit 1; sleep 0.05; done
weston-terminal --shell="$PWD/inside.sh" >terminal.log 2>&1 &
terminal=$!
weston-simple-shm >shm.log 2>&1 &
drawing=$!
until [ -s count ]; do kill -0 $terminal || exit 1; sleep 0.05; done
echo ready
while [ ! -e go ]; do wayland-info | grep -q wl_compositor || echo "no answer"; done
wait $terminal
echo "status $?"
cat inside
kill -0 $drawing && echo "draws"
kill $drawing; wait $drawing
kill $server; wait $server
echo "status $?"
