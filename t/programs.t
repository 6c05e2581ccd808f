#!/bin/bash
# Programs as they come: linked in every way, of several languages, interpreted ones.
. "$(dirname "$0")/lib.sh"

for v in program program-static program-static-pie program-no-pie; do
	cycle $v
done
if [ -x "$victim/program-musl" ]; then cycle program-musl; else skip musl "no musl-gcc"; fi
if [ -x "$victim/program-go" ]; then
	cycle program-go
	cycle program-go timers
else
	skip Go "no go"
fi
# Scripts run by themselves (their #! line), and as an argument of their interpreter.
for v in "$top"/t/victim/script.*; do
	interpreter=$(sed -n '1s/^#!//p' "$v")
	if have "$interpreter"; then cycle "$v"; else skip "${v##*/}" "no $interpreter"; fi
done
have dash && scenario "dash script.sh: restarted twice in a row" twice \
	"$(command -v dash)" "$top/t/victim/script.sh"
have bash && scenario "bash script.bash: restarted twice in a row" twice \
	"$(command -v bash)" "$top/t/victim/script.bash"
done_testing
