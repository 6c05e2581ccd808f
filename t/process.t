#!/bin/bash
# What belongs to the process as a whole.
. "$(dirname "$0")/lib.sh"

cycle process
cycle credentials
cycle settings
cycle membarrier
cycle plugins "$victim/plugin.so"
done_testing
