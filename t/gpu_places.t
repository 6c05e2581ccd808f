#!/bin/bash
# Variables of modules, managed memory and reservations that came and went at random are where they
# were over restarts, on the simulated driver, which finds room as the real one does. SEEDS says
# which sequences, ALL_SEEDS which with device, pinned, pooled and mapped memory and a second GPU
# besides, CONTEXT_SEEDS in which contexts come and go, too.
TEST_LIMIT=${TEST_LIMIT:-900}
# A trial of these takes a second of the processor, and a minute beside fifty other tests.
PATIENCE=${PATIENCE:-240}
. "${0%/*}/lib.sh"

export LD_LIBRARY_PATH=$build/t/sim
RUN_FLAGS=--gpu=on

for seed in ${SEEDS:-1 2 4 5 6 46}; do
	cycle "$build/t/split/places" "$seed"
done
# Without the plan of lower/cuda/place_plan.h, none of these is restarted.
for seed in ${LARGE_SEEDS:-2 9 15}; do
	cycle "$build/t/split/places" "$seed" large
done
# Ranges for managed variables and for others are requested alike, and not in the order of the text.
cycle "$build/t/split/mixed_variables" mo omom
# Only a trial can tell what becomes of these: that is said where there was none.
arena said
if launch "$build/t/split/mixed_variables" mo; then
	uncertain="a restart has not been tried, and of process $(program_of "$sup") it is not certain"
	checkpoint
	like "$(told)" "^trecr-ckpt: $uncertain" "a checkpoint without a trial says that it is not certain"
	: >ckpt.err
	checkpoint
	is "$? $(told)" "0 " "the next one does not say it again"
	checkpoint --try
	if can_try; then
		is "$? $(told)" "0 " "with one it is"
	else
		like "$? $(told)" "^0 .*whether it can be restarted has not been tried" "with one it is"
	fi
	finish && said_ok
	result $? "and the program is unharmed" || explain
else
	result 1 "a module with variables of both kinds" || explain
fi
sweep >/dev/null
arena certain
if launch "$build/t/split/mixed_variables" o m; then
	checkpoint
	is "$? $(told)" "0 " "nothing is said where each module has one place"
	finish
else
	result 1 "modules with a variable each" || explain
fi
sweep >/dev/null
export SIM_MACHINE_FILE=$scratch/machine
# With other room left over by what contexts have for local variables: in one range of the driver's, whose
# parts are not given back one by one.
echo "local_mib 94" >"$SIM_MACHINE_FILE"
scenario "places 17 large: restarted, with other room" once "$build/t/split/places" 17 large
echo "devices 2" >"$SIM_MACHINE_FILE"
for seed in ${ALL_SEEDS:-2 4}; do
	cycle "$build/t/split/places" "$seed" all
done
for seed in ${CONTEXT_SEEDS:-1 2}; do
	cycle "$build/t/split/places" "$seed" contexts
done

done_testing
