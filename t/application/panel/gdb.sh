#!/bin/bash
# Packages: gdb gcc. Needs: gdb gcc
# A debugger that looks at a program and at its core file; a checkpoint while it traces one would be refused.
export HOME=$PWD
cat >p.c <<'END'
#include <stdlib.h>
int depth(int n) { if (!n) abort(); return depth(n - 1) + n; }
int main(void) { return depth(5); }
END
gcc -g -O0 -o p p.c
gdb -nx -q -batch -ex 'set startup-with-shell off' -ex run -ex 'generate-core-file core' p >first.log 2>&1
mkfifo ask
gdb -nx -q p core <ask >said 2>&1 &
child=$!
exec 3>ask
say() {
	turn=$((turn + 1))
	printf '%s\necho end of %d\\n\n' "$1" $turn >&3
	until grep -q "end of $turn\$" said; do kill -0 $child || exit 1; sleep 0.02; done
}
say 'set $x = 1'
echo ready
while [ ! -e go ]; do say 'set $x = ($x * 69069 + 1) % 1000003'; say 'bt'; done
say 'set $x = 42'

say 'frame function main'
say 'print $x + depth'
say 'python print(sum(len(f.name()) for f in [gdb.newest_frame()]))'
tail -n 8 said | grep -v turn | sed 's/^(gdb) *//; s/end of .*//' | grep -v '^$'
exec 3>&-
wait $child
echo "status $?"
