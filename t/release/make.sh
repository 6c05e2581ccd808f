#!/bin/bash
# make.sh FILE: make the image that t/earlier_release.t keeps of a release, from the build of it: of a program
# on the simulated driver, as if trecr were installed in /opt/trecr. As root; nothing is left outside of FILE.
set -eu
top=$(cd "${0%/*}/../.." && pwd)
file=$(realpath "$1")

made() {
	local sup
	mount -t tmpfs none /opt
	hostname example
	make -s -C "$top" install DEPS=no PREFIX=/opt/trecr
	cp "$top/build/t/split/objects" "$top/build/t/sim/libcuda.so.1" /opt
	cd /opt
	mkfifo said
	env -i LD_LIBRARY_PATH=/opt TMPDIR=/opt HOME=/ /opt/trecr/bin/trecr-run --close-fds --gpu=on --compress=zstd:19 \
		-d /opt/saved /opt/objects </dev/null >said 2>&1 &
	sup=$!
	grep -qm 1 ready said
	/opt/trecr/bin/trecr-ckpt -s $sup
	wait $sup || :
	tar --sparse --owner=0 --group=0 -C saved -czf "$file" ckpt-000001 latest
}

if [ "${2:-}" = inside ]; then
	made
else
	unshare --mount --uts "$0" "$file" inside
fi
