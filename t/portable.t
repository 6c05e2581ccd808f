#!/bin/bash
# --portable: an image that brings the files it maps along.
. "$(dirname "$0")/lib.sh"

arena plain
RUN_FLAGS=
launch "$victim/program" && freeze_away || explain
plain=$(du -sk "$path" | cut -f1)
# That a file was removed, or replaced by another, while the program runs, is no matter either:
# the image has what was mapped of it.
arena removed
cp "$victim/program" ./removed
launch ./removed && rm removed && freeze_away && restart_detached && freeze_away &&
	restart_here && finish && [ "$status" = 0 ] && [ "$(tail -n 1 out)" = ok ]
result $? "a program whose file was removed before the checkpoint comes back" || explain
like "$(cat restart.err)" "removed .* is not here: /proc/self/exe will show" "which is said"
sweep >/dev/null
arena portable
RUN_FLAGS=--portable
launch "$victim/program"
checkpoint || explain
portable=$(du -sk "$path" | cut -f1)
ok "it is larger by the libraries" [ "$portable" -gt $((plain + 1000)) ]
freeze_away
restart_here && finish
is "$status" 0 "and restarts" || explain

# The very case it is for: a library that has become another one.
arena library
cp "$victim/plugin.so" .
launch "$victim/plugins" ./plugin.so && freeze_away || explain
printf 'something else' >plugin.so
restart_here && finish
is "$status" 0 "a library that has changed since does not matter" || explain

# Without the program's own file, which only its name in /proc can miss.
arena program
cp "$victim/program" ./moved-away
launch ./moved-away && freeze_away || explain
rm moved-away
restart_here && finish
is "$status" 0 "a program whose file is gone runs on" || explain
like "$(cat restart.err)" "moved-away is not here: /proc/self/exe will show" "and what shows that is said"
is "$(tail -n 1 out)" ok "it is whole"

cycle relro
cycle unlinked_map
cycle memfd
done_testing
