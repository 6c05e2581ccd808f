#!/bin/bash
# Variables of modules, managed memory and reservations that came and went at random are where they
# were over restarts, on the simulated driver, which finds room as the real one does. SEEDS says
# which sequences, ALL_SEEDS which with device, pinned, pooled and mapped memory besides.
TEST_LIMIT=${TEST_LIMIT:-300}
. "${0%/*}/lib.sh"

export LD_LIBRARY_PATH=$build/t/sim
RUN_FLAGS=--gpu=on

for seed in ${SEEDS:-1 2 4 5 6 46}; do
	cycle "$build/t/split/places" "$seed"
done
for seed in ${ALL_SEEDS:-1 2 3}; do
	cycle "$build/t/split/places" "$seed" all
done

done_testing
