#!/bin/bash
# --fork with a GPU: device memory is copied on the device while the program is stopped, and saved
# from there while it runs. On the simulated driver.
. "${0%/*}/lib.sh"

split=$build/t/split
export LD_LIBRARY_PATH=$build/t/sim
RUN_FLAGS="--gpu=on --incremental"

# The supervisor's calls can be held (t/fault/fault.c), and the driver's fail (t/sim/sim.h).
held() {
	export SIM_FAIL_FILE=$PWD/fail SIM_MACHINE_FILE=$PWD/machine
	changes=0
	trecr-run() {
		exec env LD_PRELOAD="$build/t/fault.so" TRECR_FAULT="$PWD/fault" \
			"$build/trecr-run" "$@"
	}
	faults fault
	launch "$split/changing_blocks" || explain
	unset -f trecr-run
	program=$(program_of "$sup")
}

# Start a checkpoint that stays where the first device memory is about to be read, with the program
# running on.
hold_drain() {
	: >ckpt.err
	faults fault memory 1 copies hold
	checkpoint --fork &
	asked=$!
	until faults fault fired; do
		kill -0 $asked 2>/dev/null || break
		await -t 0.02 -e never 2>/dev/null
	done
}
release() {
	faults fault off
	wait $asked
}
ask_change() {
	changes=$((changes + 1))
	kill -USR2 "$program"
}
await_change() {
	await -t 60 -p "$1" out "^changed $changes\$" >/dev/null
}
# It waits for a word of memory (futex, 202) in place of the next signal.
await_waiting() {
	await -t 60 -p "$program" "/proc/$program/syscall" "^202 "
}
whole() {
	finish && [ "$status" = 0 ] && grep -qx ok out
}
kill_program() {
	kill -KILL "$program"
	await -p "$sup"
}
restarts_whole() {
	restart_here
	whole
	result $? "${1:-it restarts as it was}" || explain
}

arena overwritten
held
for i in 1 2; do
	hold_drain
	ask_change
	ok "the program runs before anything is read" await_change "$sup"
	ok "the checkpoint succeeds" release || explain
	is "$(told)" "" "without a notice"
done
ok "the image is whole" quiet trecr-inspect --verify ck/latest
kill_program
restarts_whole "memory is as it was at the stop"

arena allocates
held
hold_drain
echo cuMemCreate:1:2 >fail
ask_change
ok "an allocation that fails beside the copy waits" await_waiting
release
is $? 0 "the checkpoint succeeds" || explain
ok "then it is made" await_change "$sup"
kill_program
rm fail
restarts_whole

arena supervisor_killed
held
hold_drain
echo cuMemCreate:1:2 >fail
ask_change
ok "a program waits" await_waiting
kill -9 "$sup"
ok "which ends with the supervisor" await_change "$program"
wait $asked
rm fail
kill -USR1 "$program"
await -t 60 -p "$program"
is "$(tail -1 out)" ok "and it is whole" || explain

arena ends_itself
held
hold_drain
kill -USR1 "$program"
await -t 60 -p "$sup" out '^ok$' >/dev/null
ok "a program that ends waits" await_waiting
release
is $? 0 "and is saved" || explain
await -t 60 -p "$sup"
restarts_whole

arena ends
held
hold_drain
kill -9 "$program"
release
isnt $? 0 "of one that is killed meanwhile the checkpoint fails"
like "$(cat ckpt.err)" "process [0-9]+ has ended" "and says so"
await -t 60 -p "$sup"

arena fails
held
hold_drain
echo cuMemcpyDtoHAsync_v2:1:999 >fail
release
isnt $? 0 "a copy that cannot be read fails the checkpoint"
like "$(cat ckpt.err)" "copying a snapshot of device memory" "which says so"
rm fail
: >ckpt.err
ok "another succeeds" checkpoint --fork || explain
is "$(told)" "" "from a copy"

for call in cuMemGetInfo_v2:1:999 cuMemAddressReserve:1:2 cuMemCreate:1:2 cuMemMap:1:999 \
	cuMemSetAccess:1:999 cuStreamCreate:1:2 cuMemcpyDtoDAsync_v2:1:999; do
	echo "$call" >fail
	: >ckpt.err
	ok "without ${call%%:*}" checkpoint --fork || explain
	like "$(cat ckpt.err)" "was stopped while its GPU memory was written" \
		"the program is stopped, which is said"
	rm fail
done
echo used 8100 >machine
: >ckpt.err
ok "without room for a copy" checkpoint --fork || explain
like "$(cat ckpt.err)" "a copy of [0-9]+ MiB needs twice as much free memory of GPU 0" \
	"the program is stopped, too"
rm machine
ask_change
ok "it runs on" await_change "$sup"
: >ckpt.err
ok "with room again" checkpoint --fork || explain
is "$(told)" "" "there is a copy"
kill_program
restarts_whole

arena no_kernel
held
echo cuModuleGetFunction:1:999 >fail
ok "where the device cannot hash" checkpoint --fork || explain
rm fail
kill_program
restarts_whole

arena interval
RUN_FLAGS="--gpu=on -i 1"
held
faults fault memory 1 copies hold
until faults fault fired || ! kill -0 "$sup" || [ -e ck/ckpt-000001 ]; do
	await -t 0.02 -e never 2>/dev/null
done
ask_change
ok "at an interval there is a copy without being asked for" await_change "$sup"
faults fault off
ok "which is written" await_dir ck/ckpt-000001 || explain
kill_program
restarts_whole

done_testing
