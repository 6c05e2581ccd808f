#!/bin/bash
# Packages: tmux. Needs: tmux
# A server with windows, in which shells and a program that counts are at work.
export HOME=$PWD SHELL=/bin/sh ENV='' TERM=xterm
ask() {
	tmux -S "$PWD/s" "$@"
}
screen() { # PATTERN: until it is shown
	until ask capture-pane -p -J -t "$1" | grep -q "$2"; do sleep 0.02; done
}
echo "set -g default-command 'exec /bin/sh'" >conf
ask -f conf new-session -d -x 90 -y 30 -s one
ask new-window -t one:1
ask split-window -t one:1
ask send-keys -t one:0 'x=$((6 * 7)); cat >written' Enter first Enter
ask send-keys -t one:1.1 'while [ ! -e go ]; do sleep 0.02; done; echo coun""ted' Enter
ask set-buffer 'in the buffer'
until grep -q first written 2>/dev/null; do sleep 0.02; done
echo ready
while [ ! -e go ]; do ask list-panes -a >/dev/null; sleep 0.05; done
screen one:1.1 'counted$'
ask send-keys -t one:0 second Enter C-d
ask send-keys -t one:0 'echo "x is $x of $(stty size)"' Enter
screen one:0 'x is 42'
ask capture-pane -p -t one:0 | grep -o 'x is 42.*'
ask show-buffer
echo
cat written
ask list-windows -F '#{window_index} #{window_panes} #{window_layout}' -t one
ask kill-server
