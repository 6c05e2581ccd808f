#!/bin/bash
# Signals and timers: what is set, what waits, what is left, and frames of handlers.
. "$(dirname "$0")/lib.sh"

for v in dispositions pending itimers "itimers fire" itimer_pending posix_timers fast_timers timerfd in_handler faults; do
	# shellcheck disable=SC2086
	cycle $v
done
scenario "posix_timers: timers keep their order" once "$victim/posix_timers"

# Signals of faults that a checkpoint finds on their way to a handler.
arena faults
if launch "$victim/faults"; then
	found=
	for ((life = 1; life <= 20 && ${#found} < 40; life++)); do
		freeze_away && restart_detached || break
		found+=$(trecr-inspect --threads ck | awk 'NR > 2 && $(NF - 1) != "-" { print $(NF - 1) }')
	done
	note "found: $(tr '\n' ' ' <<<"$found")"
	ok "faults were on their way at checkpoints" [ "$found" ]
	finish
	# It is no child of ours.
	is "$(cat out)" "ready
ok" "each was handled once, with what the processor had to say of it" || explain
fi
sweep >/dev/null

# So many that the kernel takes seconds to show them: what a refusal says of the time is not too little. On
# a busy machine it may be more the next time.
arena many
if launch "$victim/queued" 25000 && ! PATIENCE=1 checkpoint; then
	path=
	for _ in 1 2 3 4 5; do
		told=$(sed -nE 's/.*the kernel would take about ([0-9]+) seconds.*/\1/p' ckpt.err | tail -n 1)
		[ "$told" ] || break
		PATIENCE=$((2 * told)) checkpoint && break
	done
	ok "signals for which there is too little time are refused with the time that they take" [ "$told" ] ||
		explain
	ok "and saved in twice that time" [ -d "$path" ] || explain
	finish
	is "$status $(tail -n 1 out)" "0 ok" "and the program has not noticed" || explain
else
	for name in refused saved whole; do
		skip "many signals: $name" "${skip_reason:-the kernel is fast enough here}"
	done
fi
sweep >/dev/null

# A restart that is tried beside the program must not need room for them twice.
ulimit -i 8000 2>/dev/null
cycle queued
done_testing
