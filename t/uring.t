#!/bin/bash
# io_uring: rings of all kinds come back with their counters, entries, completions, and what is
# registered with them.
. "$(dirname "$0")/lib.sh"

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

for kind in plain small nearly-full overflowing overflowing-deferred polled deferred issuer no-array wide wide-large wide-no-array; do
	cycle uring $kind
done
cycle uring_tree
scenario "a ring beside another program's" beside_another "$victim/uring" plain
done_testing
