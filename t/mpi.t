#!/bin/bash
# MPI programs of one machine, launcher and all, under one trecr-run: three times a checkpoint, then
# all processes are killed (SIGKILL), and a restart, while messages are under way in shared memory
# and in sockets. What they give is what an undisturbed run gives.
. "$(dirname "$0")/lib.sh"
apart -mn
if [ -n "${TRECR_APART:-}" ]; then
	loopback_up
	mount -t tmpfs tmpfs /dev/shm # where Open MPI leaves files when it is killed
fi

kill_and_restart() { # restart_detached or restart_here
	step="checkpoint" && checkpoint && step="being killed" && { sweep >/dev/null || true; } &&
		step="restart" && "$1"
}

killed_three_times() {
	kill_and_restart restart_detached && kill_and_restart restart_detached &&
		kill_and_restart restart_here && step="going on" && : >go &&
		await -t 120 -p "$sup" 2>>await.err || return 1
	wait "$sup"
	status=$?
	step="its status" && [ $status = 0 ] && given >../restarted && step="the same result" &&
		diff ../undisturbed ../restarted >>err && step="leaving nothing behind" && sweep 60
}

# shellcheck disable=SC2030,SC2031 # it is a test's own
job() { # NAME LAUNCHER...
	local name=$1 step
	shift
	arena job
	mkdir x && cd x || exit 1
	# Sessions of Open MPI, whose sockets have names of limited length.
	export TMPDIR=$scratch
	step="an undisturbed run"
	undisturbed "$@" && step=start && launch "$@" && killed_three_times
	result $? "$name" || {
		diag "failed at: $step${status:+ (status $status)}"
		explain
	}
	sweep >/dev/null
	status=
}

for kind in mpich openmpi; do
	launcher=("mpiexec.$kind")
	# As many ranks as are asked for, on however few processors.
	[ $kind = mpich ] || launcher+=(--oversubscribe)
	[ $kind = mpich ] || ! am_root || launcher+=(--allow-run-as-root)
	for ranks in 2 5; do
		name="$kind, $ranks ranks, killed three times"
		if ! have mpicc.$kind || ! have mpiexec.$kind; then
			skip "$name" "not installed"
		elif [ $kind = openmpi ] && [ -z "${TRECR_APART:-}" ]; then
			skip "$name" "needs root, or each restart waits for a minute"
		elif ! mpicc.$kind -O1 -o "$scratch/$kind" "$top/t/application/messages.c" \
			>"$scratch/cc.log" 2>&1; then
			result 1 "$name" || diag "$(head "$scratch/cc.log")"
		else
			job "$name" "${launcher[@]}" -n $ranks "$scratch/$kind"
		fi
	done
done
done_testing
