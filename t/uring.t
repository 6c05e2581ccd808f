#!/bin/bash
# io_uring: rings of all kinds come back with their counters, entries, completions, and what is
# registered with them.
. "$(dirname "$0")/lib.sh"

apart -m

# What another program has is nobody's business.
beside_another() {
	local other
	"$victim/uring" plain </dev/null >other &
	other=$!
	await -t 60 -p $other other '^(ready|skip .*)$' >/dev/null && checkpoint
	local result=$?
	kill $other && wait $other 2>/dev/null
	[ $result = 0 ] && finish && said_ok
}

# Files are opened while the program is being saved. Who comes too late finds that a request does
# not end; then it is saved again, without any under way.
opened_meanwhile() {
	local i
	{
		await -t 60 -p "$sup" "/proc/$(program_of "$sup")/status" '^State:[[:space:]]*t'
		for i in 0 1 2 3; do
			: >"fifo$i"
			await -t 0.05 -e never
		done
	} >/dev/null 2>&1 &
	local opens=$!
	freeze_away || { wait "$opens"; grep -q 'OPENAT.* does not end' ckpt.err && freeze_away; } ||
		return 1
	wait "$opens"
	step=restart && restart_here && finish && [ "$status" = 0 ] && said_ok
}

# Whether all that follows is refused, as before Linux 6.12 (refused_before).
refused_here() {
	[ "$(printf '6.12\n%s\n' "$(uname -r)" | sort -V | head -n 1)" != 6.12 ]
}

refused_before() {
	arena before
	URING_REFUSED=yes launch "$victim/uring" plain
	not_ok "a ring before Linux 6.12" quiet checkpoint
	like "$(cat ckpt.err)" "before Linux 6[.]12, and this is [0-9.]+.*: have the program do without io_uring" \
		"is refused" || explain
	finish && said_ok
	result $? "and runs on" || explain
	sweep >/dev/null
}

if refused_here; then
	refused_before
	skip "rings" "rings are refused before Linux 6.12"
	done_testing
	exit
fi
for kind in plain small nearly-full overflowing overflowing-deferred polled deferred issuer no-array wide wide-large wide-no-array; do
	cycle uring $kind
done
cycle uring_tree
# To map a ring, a restart takes more of the address space than most limits leave.
limited=("$BASH" -c 'ulimit -v 4000000 && exec "$0" plain' "$victim/uring")
scenario "a ring in limited memory" twice "${limited[@]}"
# Where the restart may have no more either, that is said.
in_limits() {
	mkdir limits && for tool in trecr-run trecr-restart; do
		printf '#!/bin/sh\nulimit -v 4000000; exec %s/%s "$@"\n' "$build" $tool >limits/$tool
	done && chmod +x limits/*
}
if (ulimit -v 4000000 && ulimit -v unlimited) 2>/dev/null || grep -qa __asan_init "$build/trecr-run"; then
	skip "a ring where all memory is limited" "it can be exceeded here"
else
	arena limited
	in_limits
	PATH=$PWD/limits:$PATH launch "$victim/uring" plain
	not_ok "a ring where all memory is limited" quiet checkpoint
	like "$(cat ckpt.err)" "RLIMIT_AS.*ulimit -Hv" "is refused" || explain
	finish && said_ok
	result $? "and runs on" || explain
	sweep >/dev/null
fi
# A process that is another user's lets root without CAP_SYS_RESOURCE, as in many containers, change none of its limits.
what="a ring of another user's, and root without CAP_SYS_RESOURCE"
if am_root && have setpriv; then
	mkdir "$scratch/weak" && chmod 711 "$scratch" && for name in run ckpt restart; do
		printf '#!/bin/sh\nexec setpriv --bounding-set=-sys_resource -- %s "$@"\n' \
			"$build/trecr-$name" >"$scratch/weak/trecr-$name"
	done && chmod 755 "$scratch"/weak/*
	# shellcheck disable=SC2086,SC2016
	PATH=$scratch/weak:$PATH scenario "$what" twice $as_nobody "$BASH" -c 'cd /tmp && ulimit -Sv 8000000 && exec "$0" plain' "$victim/uring"
else
	skip "$what" "this takes root and setpriv"
fi
scenario "descriptors that requests open while a checkpoint is taken" opened_meanwhile \
	"$victim/uring_opens"
scenario "a ring beside another program's" beside_another "$victim/uring" plain

# As before Linux 6.3.
where="where the kernel does not show registered rings"
without_numbers() { # COMMAND...
	arena older
	confine --no-registered-ring trecr-run -d ck -- "$@" </dev/null >out 2>err &
	sup=$!
	await -t 60 -p $sup out '^(ready|skip .*)$' >/dev/null 2>await.err
}
if ! confine true; then
	skip "rings, $where" "no seccomp filters"
elif without_numbers "$victim/uring" plain registered && grep -q '^skip ' out; then
	skip "rings, $where" "$(sed -n 's/^skip //p' out)"
else
	not_ok "a ring that is registered, $where" quiet checkpoint
	like "$(cat ckpt.err)" "registered as 5 \\(Linux 6\\.12" "is refused" || explain
	finish && said_ok
	result $? "and runs on" || explain
	sweep >/dev/null
	for v in "uring plain" "uring_waits plain"; do
		# shellcheck disable=SC2086
		without_numbers "$victim/"$v && freeze_away && restart_here && finish &&
			[ "$status" = 0 ] && said_ok
		result $? "$v: restarted, $where" || explain
		sweep >/dev/null
	done
fi
sweep >/dev/null

# trecr and victims read the version there.
older=$scratch/osrelease
echo 6.11.10 >"$older"
if [ -n "${TRECR_APART:-}" ] && mount --bind "$older" /proc/sys/kernel/osrelease; then
	refused_before
	arena skipped
	not_ok "a test of rings there" launch "$victim/uring" plain
	is "$skip_reason" "rings are refused before Linux 6.12" "is skipped"
	sweep >/dev/null
	umount /proc/sys/kernel/osrelease
else
	skip "rings before Linux 6.12" "this takes root"
fi
done_testing
