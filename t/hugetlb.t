#!/bin/bash
# Huge pages that are set aside (hugetlbfs). Root sets some aside for the time of the test.
pages=/proc/sys/vm/nr_hugepages
# One at a time, as the pages are the machine's.
if [ -z "${HUGETLB_LOCKED:-}" ] && [ -r $pages ]; then
	HUGETLB_LOCKED=1 exec flock -o $pages "${BASH:-bash}" "$0" "$@"
fi
. "$(dirname "$0")/lib.sh"

before=$(cat $pages 2>/dev/null) || skip_all "this kernel has no huge pages"
end() {
	umount "$scratch/huge" 2>/dev/null
	echo "$before" >$pages
	cd /
	rm -rf "$scratch"
}
# Eight would do. But whatever else runs here may take some: UCX, which MPI libraries use, does when
# there are any.
wanted=$((before + 100))
ours=
if am_root && echo $wanted >$pages 2>/dev/null; then
	ours=yes
	trap end EXIT
fi
free=$(sed -n 's/^HugePages_Free: *//p' /proc/meminfo)
[ "${free:-0}" -ge 4 ] || skip_all "no huge pages to be had"

cycle hugetlb
for how in shared memfd sealed private-memfd sysv sysv-detached; do
	cycle hugetlb $how
done
mkdir "$scratch/huge"
if am_root && mount -t hugetlbfs -o pagesize=2M huge "$scratch/huge" 2>mount.err; then
	cycle hugetlb unlinked ../huge
else
	skip "hugetlb unlinked" "no hugetlbfs can be mounted here"
fi

# A page that is mapped nowhere, but for remap_file_pages(2), which still leads to it.
cat >"$scratch/gap.py" <<'END'
import ctypes, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
size = 2 << 20
first = libc.mmap(None, ctypes.c_size_t(2 * size), 3, 0x40021, -1, 0) # shared, anonymous, huge
if first == ctypes.c_void_p(-1).value:
    print('skip no huge pages set aside', flush=True)
    exit()
second = first + size
ctypes.memset(first, ord('a'), 1), ctypes.memset(second, ord('b'), 1)
assert libc.munmap(ctypes.c_void_p(first), ctypes.c_size_t(size)) == 0
print('ready', flush=True)
signal.sigwait({signal.SIGUSR1})
found = ctypes.string_at(second, 1)
assert libc.syscall(ctypes.c_long(216), ctypes.c_long(second), ctypes.c_long(size), ctypes.c_long(0),
                    ctypes.c_long(0), ctypes.c_long(0)) == 0
print((found + ctypes.string_at(second, 1)).decode(), flush=True)
END
if have python3; then
	arena gap
	if ! launch python3 ../gap.py; then
		skip "a page that is mapped nowhere" "$skip_reason"
	elif am_root; then
		ok "with a page that is mapped nowhere" freeze_away && restart_here
	else
		not_ok "with a page that is mapped nowhere: refused" quiet checkpoint
	fi
	[ -n "$skip_reason" ] || finish
	[ -n "$skip_reason" ] || is "$(xargs <out)" "ready ba" "which is still there" || explain
	sweep >/dev/null
fi
if have python3 && am_root && have setpriv; then
	(
		cd "$scratch" && drop_memory_capabilities
		arena gap-unprivileged
		launch python3 ../gap.py && ! checkpoint
		echo $? >refused
		finish
	)
	cd "$scratch/$((arenas + 1)).gap-unprivileged" || exit 1
	is "$(cat refused)" 0 "without privileges such a page is refused"
	like "$(cat ckpt.err)" "has huge pages that no shared mapping shows .* run trecr as root" "with the reason"
	is "$(xargs <out)" "ready ba" "and the program has not noticed" || explain
	arenas=$((arenas + 1))
	sweep >/dev/null
fi

# Where no more are available.
for how in "" shared memfd sysv; do
	arena "none $how"
	if [ -z "$ours" ]; then
		skip "hugetlb $how: no page is free" "this user cannot change how many there are"
		continue
	fi
	# shellcheck disable=SC2086
	if ! launch "$victim/hugetlb" $how && [ -n "$skip_reason" ]; then
		skip "hugetlb $how: no page is free" "$skip_reason"
		continue
	fi
	freeze_away
	echo 0 >$pages
	timeout -k 1 60 trecr-restart ck </dev/null >>out 2>restart.err
	is $? 125 "hugetlb $how: a restart while no page is free" || explain
	like "$(tail -n 1 restart.err)" "^trecr-restart: cannot .*huge pages.*reserved.*memory" "is refused"
	leaves_nothing "and leaves nothing behind"
	echo $wanted >$pages
	restart_here && finish
	is "$status" 0 "with pages it comes back" || explain
	sweep >/dev/null
done
done_testing
