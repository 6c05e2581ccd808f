# job_lib.sh - what the tests of jobs have in common. To be sourced behind lib.sh. pids are those of the
# members' supervisors, whose programs are t/victim/lockstep; output is in out.RANK and err.RANK.
# shellcheck shell=bash

pause() { # SECONDS, at the FIFO `pause`
	read -rt "$1" <>pause || true
}

await_round() { # RANK ROUND: until the member is in another round
	local i
	for ((i = 0; i < 3000; i++)); do
		[ "$(readlink "round.$1")" = "$2" ] || return 0
		pause 0.02
	done
	return 1
}

job_checkpoint() {
	path=$(trecr-ckpt -t 60 "$@" ck 2>>ckpt.err)
}

# All members end well, and so have not seen another at another time.
finish_job() {
	local pid
	: >go
	for pid in "${pids[@]}"; do
		await -t 60 -p "$pid" 2>>await.err || return
		wait "$pid" || return
	done
	[ "$(sort -u out.* | tr '\n' ' ')" = "ok ready " ]
}

# Of how many ranks jobs are to be: as root of each of these, as an ordinary user, for the time that it takes, of the last.
sizes() { # COUNT...
	am_root && echo "$@" || echo "${!#}"
}

job_result() { # NAME
	result $? "$1" || {
		diag "failed at: ${step:-}"
		explain out.* err.*
	}
}

# ---- of jobs that one launcher has started, whose pid is $launcher ----

launched_well() {
	await -t 60 -p "$launcher" 2>>await.err && wait "$launcher" && [ ! -s launcher.out ] && [ ! -s launcher.err ]
}

tell() { # NAME: a result, with what is left when it failed
	result $? "$1" || { diag "failed at: ${step:-}" && explain out.* err.* launcher.out launcher.err; }
}

# In a fresh directory, with something to wait for a moment at.
job_arena() {
	arena "$1"
	mkfifo pause
}

all_in_a_round() { # COUNT
	local rank
	rm -f round.*
	for ((rank = 0; rank < $1; rank++)); do
		await_round "$rank" '' || return
	done
}

kill_all() {
	sweep >/dev/null || true
}

# ranks and start_job are the test's own: the launcher, and what it starts.
restart_job() { # COUNT
	ranks "$1" trecr-restart ck && all_in_a_round "$1"
}

# Saved, killed and brought back, while it works. start_job and finish_job are the test's own.
three_times() { # COUNT [ARGUMENT...]
	local round
	step=start && start_job "$@" &&
		for round in first second third; do
			step="$round checkpoint" && job_checkpoint && step="going on" && all_in_a_round "$1" &&
				kill_all && step="$round restart" && restart_job "$1" || break
		done && [ "$round" = third ] && step="its end" && finish_job "$1"
}
