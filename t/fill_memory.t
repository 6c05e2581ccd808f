#!/bin/bash
# Large regions of ordinary memory are filled without a page fault for each page, where userfaultfd(2) is allowed, and
# have the same contents, compared with their hashes, and the same mappings where it is not.
. "$(dirname "$0")/lib.sh"

cycle filled_regions

# The program has 10700 pages in them; with several threads, and with one, it is brought back by COMMAND.
restarted() { # OPTION COMMAND...
	local option=$1
	shift
	: >restart.err
	faults=
	"$@" trecr-restart -D --pidfile pidfile "$option" ck </dev/null >restart.out 2>restart.err &&
		sup=$(cat restart.out) && finish && grep -qx ok out || return
	faults=$(sed -n 's/^faults //p' out)
	printf 'ready\n' >out
	sweep 60
}

pages_are_huge() {
	grep -qs '\[always\]' /sys/kernel/mm/transparent_hugepage/enabled \
		/sys/kernel/mm/transparent_hugepage/hugepages-*/enabled
}

has_userfaultfd() { # UFFD_USER_MODE_ONLY
	python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(323, 1) < 0)'
}

# Why faults tell nothing here, if they do not.
uncounted=
if pages_are_huge; then
	uncounted="pages are huge without advice"
elif ! command -v python3 >/dev/null; then
	uncounted="no python3"
elif ! has_userfaultfd; then
	uncounted="no userfaultfd here"
fi

# counts NAME CONDITION...: with the faults of the restart before it
counts() {
	if [ -n "$uncounted" ]; then
		skip "$1" "$uncounted"
	else
		ok "$1 (${faults:-})" "${@:2}"
	fi
}

arena faults
launch "$victim/filled_regions" tell && freeze_away || explain
for option in -j1 -j4; do
	ok "$option: memory is filled" restarted $option env || explain
	counts "$option: without a fault for each page" [ "${faults:-9999}" -lt 1500 ]
	if confine --no-userfaultfd true; then
		ok "$option: without userfaultfd" restarted $option confine --no-userfaultfd || explain
		counts "$option: by faults" [ "${faults:-0}" -gt 1500 ]
	else
		skip "$option: without userfaultfd" "no seccomp filters"
	fi
done

# A filter's way to forbid a call may be to end who makes it.
for action in kill trap; do
	if confine --$action-userfaultfd true; then
		ok "where userfaultfd would $action" restarted -j2 confine --$action-userfaultfd || explain
		counts "where userfaultfd would $action: by faults" [ "${faults:-0}" -gt 1500 ]
	else
		skip "where userfaultfd would $action" "no seccomp filters"
	fi
done

# What is copied is compared where it is then.
file=$(find ck/ckpt-*/ -name '[0-9]*')
edit-image "$file" flip $((9 << 20))
not_ok "a damaged block is not for the program" restarted -j2 env
like "$(cat restart.err)" "cannot read image .*: the block at 0x[0-9a-f]+ .* is damaged" "which the message says"
is "$(cat out)" ready "and nothing of it runs"
done_testing
