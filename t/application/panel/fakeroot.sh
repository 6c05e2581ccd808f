#!/bin/bash
# Packages: fakeroot. Needs: fakeroot-sysv tar
# Owners that only a daemon knows, which a preloaded library asks by System V message queues.
rm -rf tree && mkdir tree
cat >work.sh <<'END'
for ((k = 0; k < 40; k++)); do
	echo "$k" >"tree/f$k"
	chown "$((1000 + k)):$((2000 + k))" "tree/f$k"
done
mknod tree/device c 5 1
echo ready
turns=0
while [ ! -e go ]; do
	k=$((turns++ % 40))
	chown "$((3000 + k))" "tree/f$k"
	[ "$(stat -c %u:%g "tree/f$k")" = "$((3000 + k)):$((2000 + k))" ] || echo "differs: $k"
	chown "$((1000 + k))" "tree/f$k"
done
stat -c '%n %u:%g %F' tree/* | sort
tar -cf - --sort=name --mtime=@0 tree | tar -tvf - | cksum
END
fakeroot-sysv -- bash work.sh
echo "status $?"
