#!/bin/bash
# Contexts of asynchronous I/O (io_setup) keep their addresses and unread events.
. "$(dirname "$0")/lib.sh"

cycle aio
done_testing
