#!/bin/bash
# What t/gpu_places.t tests on the simulated driver, on a real GPU: variables of modules, managed
# memory and reservations that came and went at random are where they were over restarts. SEEDS,
# ALL_SEEDS, LARGE_SEEDS and CONTEXT_SEEDS say which sequences, MIXED=no leaves out what is no sequence.
TEST_LIMIT=${TEST_LIMIT:-600}
NEED_NVCC=no
. "${0%/*}/lib.sh"

for seed in ${SEEDS:-$(seq 22)}; do
	cycle "$build/t/split/places" "$seed"
done
for seed in ${ALL_SEEDS:-$(seq 8)}; do
	cycle "$build/t/split/places" "$seed" all
done
for seed in ${LARGE_SEEDS:-$(seq 12)}; do
	cycle "$build/t/split/places" "$seed" large
done
[ "${MIXED:-yes}" = no ] || cycle "$build/t/split/mixed_variables" mo omom
for seed in ${CONTEXT_SEEDS:-$(seq 4)}; do
	cycle "$build/t/split/places" "$seed" contexts
done

done_testing
