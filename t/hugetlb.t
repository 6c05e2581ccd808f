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
ours=
if am_root && echo $((before + 8)) >$pages 2>/dev/null; then
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

# Where there are none to be had any more.
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
	echo $((before + 8)) >$pages
	restart_here && finish
	is "$status" 0 "with pages it comes back" || explain
	sweep >/dev/null
done
done_testing
