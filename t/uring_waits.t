#!/bin/bash
# Requests that wait in an io_uring wait on after a restart, and end when what they wait for comes.
. "$(dirname "$0")/lib.sh"

for kind in plain used polled deferred no-array wide several; do
	cycle uring_waits $kind
done
done_testing
