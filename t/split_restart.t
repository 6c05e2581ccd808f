#!/bin/bash
# Programs with a lower half are checkpointed, killed and restarted, over the simulated driver.
. "${0%/*}/lib.sh"

split=$build/t/split
export LD_LIBRARY_PATH=$build/t/sim
RUN_FLAGS=--gpu=on

cycle "$split/stateless"
cycle "$split/stateless" 1000
cycle "$split/stateless" 2000

done_testing
