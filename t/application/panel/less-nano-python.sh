#!/bin/bash
# Packages: tmux less nano python3. Needs: tmux less nano python3
# A pager, an editor with a text that is not written yet, and Python's prompt, in windows of tmux.
export HOME=$PWD SHELL=/bin/sh ENV='' TERM=xterm LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
ask() {
	tmux -S "$PWD/s" "$@"
}
screen() { # WINDOW PATTERN: until it is shown
	until ask capture-pane -p -t "one:$1" | grep -q "$2"; do ask list-panes >/dev/null || exit 1; sleep 0.02; done
}
keys() { # WINDOW KEY...
	local window=$1
	shift
	ask send-keys -t "one:$window" "$@"
}
for ((k = 1; k <= 5000; k++)); do echo "line $k"; done >lines
echo "set -g default-command 'exec /bin/sh'" >conf
ask -f conf new-session -d -x 90 -y 30 -s one 'less lines'
ask new-window -t one:1 'nano -I text'
ask new-window -t one:2 'python3 -q'
screen 0 'line 1$'
keys 0 2000G
screen 0 'line 2000$'
screen 1 'nano'
keys 1 'written before' Enter
screen 1 'written before'
screen 2 '>>>'
keys 2 'kept = [n * n for n in range(100)]' Enter 'sum(kept)' Enter
screen 2 328350
echo ready
# Down and up again: what the windows show in the end does not hang on how often.
while [ ! -e go ]; do
	keys 0 j; keys 0 k; keys 1 x BSpace; keys 2 x BSpace
	sleep 0.05
done
keys 0 /4321 Enter
screen 0 'line 4321$'
ask capture-pane -p -t one:0 | sed -n 1p
ask resize-window -t one:0 -x 70 -y 20
keys 0 3000g
screen 0 'line 3000$'
keys 0 q
keys 1 'and after' Enter
screen 1 'and after'
keys 1 C-o Enter
until grep -q 'and after' text 2>/dev/null; do sleep 0.02; done
keys 1 C-x
keys 2 'print("kept", kept[99], "in all", sum(kept))' Enter
screen 2 'kept 9801'
ask capture-pane -p -t one:2 | grep -o '^kept 9801.*'
keys 2 C-d
while ask list-windows 2>/dev/null; do sleep 0.05; done >/dev/null
cat text
