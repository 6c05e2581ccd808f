#!/bin/bash
# io_uring: rings of all kinds come back with their counters, entries, completions, and what is
# registered with them.
. "$(dirname "$0")/lib.sh"

for kind in plain small nearly-full overflowing overflowing-deferred polled deferred issuer no-array wide wide-large wide-no-array; do
	cycle uring $kind
done
cycle uring_tree
done_testing
