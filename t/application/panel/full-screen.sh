#!/bin/bash
# Packages: tmux htop mc. Needs: tmux htop mc
# Programs that draw on a terminal, in windows of tmux.
export HOME=$PWD SHELL=/bin/sh ENV='' TERM=xterm LANG=C.UTF-8
ask() {
	tmux -S "$PWD/s" "$@"
}
screen() { # WINDOW PATTERN: until it is shown
	until ask capture-pane -p -t "one:$1" | grep -q "$2"; do ask list-panes >/dev/null || exit 1; sleep 0.05; done
}
mkdir folder folder/inner
touch folder/first folder/second
echo "set -g default-command 'exec /bin/sh'" >conf
ask -f conf new-session -d -x 100 -y 30 -s one 'htop -d 2'
ask new-window -t one:1 'cd folder && exec mc --nosubshell .'
screen 0 'Load average'
screen 1 second
echo ready
while [ ! -e go ]; do ask send-keys -t one:0 Down; ask send-keys -t one:1 Down; sleep 0.05; done
touch folder/third
ask send-keys -t one:1 C-r
screen 1 third
ask capture-pane -p -t one:1 | grep -o third | sort -u
ask resize-window -t one:0 -x 90 -y 20
screen 0 'Load average'
ask send-keys -t one:0 q
while ask list-windows -F '#{window_index}' -t one | grep -q '^0$'; do sleep 0.05; done
ask list-windows -F '#{window_index}' -t one
ask kill-server
