#!/bin/bash
# Huge pages that are set aside (hugetlbfs). Root sets some aside for the time of the test.
. "$(dirname "$0")/lib.sh"

pages=/proc/sys/vm/nr_hugepages
before=$(cat $pages 2>/dev/null) || skip_all "this kernel has no huge pages"
if am_root && echo $((before + 6)) >$pages 2>/dev/null; then
	trap 'echo "$before" >$pages; cd /; rm -rf "$scratch"' EXIT
fi
free=$(sed -n 's/^HugePages_Free: *//p' /proc/meminfo)
[ "${free:-0}" -ge 4 ] || skip_all "no huge pages to be had"

cycle hugetlb
# Contents that several mappings or processes share are not read yet: refused, not forgotten.
for how in shared memfd private-memfd; do
	arena "$how"
	launch "$victim/hugetlb" $how
	checkpoint
	isnt $? 0 "huge pages, $how, are refused"
	like "$(cat ckpt.err)" "process $(program_of "$sup").*(huge pages|hugetlb)" "and why is said"
	finish
	is "$status" 0 "and the program runs on" || explain
	sweep >/dev/null
done
done_testing
