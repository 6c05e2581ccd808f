# faults.sh - for tests that let one system call of trecr's own fail after the other
# (t/fault/fault.c). To be sourced behind lib.sh.
# shellcheck shell=bash

preload="env LD_PRELOAD=$build/t/fault.so"

# What is left behind shows where nobody else makes anything: in namespaces for System V objects,
# sockets, message queues and mounts that are the test's own, and in a directory for what is
# temporary.
apart -imn "$@"
mount_own() {
	mount --make-rprivate / && mount -t tmpfs none /dev/shm && mount -t mqueue none /mnt
}
export TMPDIR=$scratch/tmp
mkdir "$TMPDIR"
if [ -z "${TRECR_APART:-}" ]; then
	note "no namespaces of its own: what is left behind is not looked for"
elif ! mount_own || ! loopback_up; then
	result 1 "namespaces that are the test's own"
	exit 1
fi

# A line for each System V object, message queue, shared memory file, mount and socket there is,
# and each table of the packet filter.
traces() {
	[ -n "${TRECR_APART:-}" ] || return 0
	awk 'FNR > 1 { print FILENAME, $1, $2 }' /proc/sysvipc/*
	ls -A /mnt /dev/shm
	cut -d' ' -f5- /proc/self/mountinfo
	awk 'FNR > 1 { print FILENAME, $NF }' /proc/net/unix
	awk 'FNR > 1 && $4 != "06" { print FILENAME, $2, $3 }' /proc/net/tcp /proc/net/tcp6 \
		/proc/net/udp /proc/net/udp6
	tables 2>/dev/null
	find "$scratch" -name '.trecr-*' -o -name '*.tmp'
}

# Is there what was there "before", and nothing else, at the latest when what has been killed has
# ended? What differs is in the file left. (Sockets that were on their way in each other go later:
# the kernel looks for such from time to time.)
nothing_left() {
	local i
	for ((i = 0; i < 100; i++)); do
		traces | diff before - | grep '^[<>]' | grep -v '^< /proc/net/unix ' >left
		[ -s left ] || return 0
		await -t 0.1 -e never 2>/dev/null
	done
	return 1
}

# The next call to fail: all at first, then fewer and fewer.
further() {
	n=$((n < ${dense:-3} ? n + 1 : n * 2))
}

one_line() {
	[ "$(wc -l <"$1")" = 1 ] && grep -q '^trecr-' "$1"
}
