#!/bin/bash
# Members of a job that know each other by their process ids come back in one pid namespace where they cannot have the ids
# outside, as an ordinary user's cannot.
. "$(dirname "$0")/lib.sh"
. "$top/t/job_lib.sh"

restart=(trecr-restart)
! am_root || restart+=(--namespace)

# start FROM TO COMMAND...: as a launcher does. pids are those of the members; output goes to out.RANK and err.RANK.
start() {
	local rank
	pids=()
	for ((rank = $1; rank <= $2; rank++)); do
		PMI_RANK=$rank PMI_SIZE=$(($2 + 1)) "${@:3}" </dev/null >>"out.$rank" 2>>"err.$rank" &
		pids+=($!)
	done
}

start_job() { # RANKS
	local rank
	start 0 $(($1 - 1)) trecr-run -d ck -- "$victim/rank_pids"
	for ((rank = 0; rank < $1; rank++)); do
		await -t 60 -p "${pids[rank]}" "out.$rank" '^ready$' >/dev/null 2>>await.err || return
	done
}

restart_job() { # RANKS
	start 0 $(($1 - 1)) "${restart[@]}" ck && all_in_a_round "$1"
}

# Once started, three members are saved and killed; then brought back.
back() {
	job_arena "$1"
	step=start && start_job 3 && step=checkpoint && job_checkpoint && kill_all && step=restart && restart_job 3
}

# When all have ended, nothing is left of their namespace.
job_ends() {
	finish_job && step="leaving nothing behind" && sweep 60
}

namespace_of() { # RANK: of its program
	readlink "/proc/$(program_of "${pids[$1]}")/ns/pid"
}

# The one in which their programs are, of which this process is none.
share_a_namespace() {
	[ "$(namespace_of 0)" = "$(namespace_of 1)" ] && [ "$(namespace_of 0)" = "$(namespace_of 2)" ] &&
		[ "$(namespace_of 0)" != "$(readlink /proc/self/ns/pid)" ]
}

init_of() { # RANK
	pgrep -P "${pids[$1]}" -x trecr-init
}

first_process() {
	pgrep -P "${pids[0]}" -x trecr-namespace
}

# gone RANK...: all others have seen that these are no more, and go on.
gone() {
	local rank other
	rm -f round.*
	for rank in 0 1 2; do
		[[ " $* " != *" $rank "* ]] || continue
		await_round $rank '' || return
		for other; do
			await -t 60 "out.$rank" "^rank $other is gone$" >/dev/null 2>>await.err || return
		done
	done
}

# The supervisor of a rank ends as its program was killed.
tells_killed() { # RANK
	await -t 60 -p "${pids[$1]}" 2>>await.err
	wait "${pids[$1]}" 2>/dev/null
	[ $? = 137 ]
}

# All that is left ends well.
rest_ends() { # RANK...
	local rank
	: >go
	for rank; do
		await -t 60 -p "${pids[rank]}" 2>>await.err && wait "${pids[rank]}" && [ "$(tail -n 1 "out.$rank")" = ok ] || return
	done
	step="leaving nothing behind" && sweep 60
}

back rounds && step="the namespace" && share_a_namespace && step="what is said" &&
	grep -q 'in a pid namespace with the other ranks of this node' err.2 &&
	step="second checkpoint" && job_checkpoint && kill_all && step="second restart" && restart_job 3 &&
	step="the second namespace" && share_a_namespace && step="third checkpoint" && job_checkpoint -s &&
	step="leaving nothing behind" && sweep 60 && step="third restart" && restart_job 3 && step="its end" && job_ends
job_result "three members that look at each other, three times saved and brought back"
kill_all

back program && step="a program is killed" && kill -KILL "$(program_of "${pids[1]}")" && tells_killed 1 && gone 1 &&
	step="its end" && rest_ends 0 2
job_result "one program is killed: the others go on"
kill_all

back init && step="an init is killed" && killed=$(program_of "${pids[2]}") && kill -KILL "$(init_of 2)" && tells_killed 2 &&
	await -t 60 -p "$killed" 2>>await.err && gone 2 && step="its end" && rest_ends 0 1
job_result "so do they when an init is killed, whose program ends with it"
kill_all

# Rank 0 has made the namespace.
back supervisor && step="a supervisor is killed" && program=$(program_of "${pids[0]}") && first=$(first_process) &&
	kill -KILL "${pids[0]}" && rm -f round.* && await_round 0 '' && await_round 1 '' && await_round 2 '' &&
	step="its program is killed" && kill -KILL "$program" && gone 0 && kill -0 "$first" && step="its end" && rest_ends 1 2
job_result "and when the supervisor is killed whose child is the first process, with its program going on as well"
kill_all

back first && step="the first process is killed" && kill -KILL "$(first_process)" && tells_killed 0 && tells_killed 1 &&
	tells_killed 2 && step="leaving nothing behind" && sweep 60
job_result "all programs end with the first process, and the supervisors say so"
kill_all

# Each finds its own, whose ids are others'.
job_arena one && step=start && start_job 2 && job_checkpoint && kill_all && one=$PWD &&
	job_arena two && start_job 2 && job_checkpoint && kill_all && step=restart && rm -f round.* ../*.one/round.* &&
	start 0 1 "${restart[@]}" ck && second=("${pids[@]}") && cd "$one" && restart_job 2 && cd ../*.two &&
	await_round 0 '' && await_round 1 '' && step="the end of one" && pids=("${second[@]}") && finish_job &&
	step="the other one" && cd "$one" && all_in_a_round 2
job_result "two jobs at once"
kill_all

# ---- on a terminal ----

# What is typed goes to rank 0's program, and ^C ends it.
both() { # COMMAND...: steps from standard input
	# shellcheck disable=SC2016 # of the inner shell
	"$top/t/tool/terminal.py" "$BASH" -c 'PMI_RANK=1 PMI_SIZE=2 "$@" </dev/null >>out.1 2>>err.1 &
		PMI_RANK=0 PMI_SIZE=2 exec "$@"' both "$@" >screen 2>&1
}

job_arena terminal
mkfifo meeting
if have python3; then
	# shellcheck disable=SC2016 # of the inner shell
	step=start && { both trecr-run -d ck -- sh -c '[ "$PMI_RANK" = 0 ] || { echo >meeting && exec sleep 600; }
		read -r x <meeting && echo up && exec cat' || true; } <<-'STEPS' &&
		expect up
		send one\n
		expect one\r\none\r\n
		run trecr-ckpt -s -t 60 ck
	STEPS
		[ -e ck/ckpt-000001 ] && step=restart && { both "${restart[@]}" ck || [ $? = 130 ]; } <<-'STEPS'
			expect pid namespace with the other ranks
			send two\n
			expect two\r\ntwo\r\n
			send \x03
		STEPS
	job_result "a rank comes back with its terminal" || diag "$(cat screen)"
	kill_all
else
	skip "a rank comes back with its terminal" "needs python3 for a pseudo-terminal"
fi

# ---- one of them cannot be brought back ----

# Before the ranks have agreed on a namespace: its program's file cannot be executed any more.
job_arena unagreed
cp "$victim/rank_pids" other
# shellcheck disable=SC2016 # of the inner shell
step=start && start 0 2 trecr-run -d ck -- sh -c '[ "$PMI_RANK" = 2 ] || exec "$0"; exec ./other' "$victim/rank_pids"
for rank in 0 1 2; do
	await -t 60 -p "${pids[rank]}" "out.$rank" '^ready$' >/dev/null 2>>await.err
done
step=checkpoint && job_checkpoint && kill_all && chmod -x other && start 0 2 "${restart[@]}" ck
wait "${pids[@]}"
isnt $? 0 "a rank cannot be brought back"
like "$(cat err.0)" 'cannot restart ck: rank 2: .*cannot execute' "of which one rank tells" || explain err.*
leaves_nothing "and nothing is left of the others"
chmod +x other

# Where a call fails that a supervisor makes, or what it makes. Each time nothing is left, not even of those that have come back.
fails_at() { # RANK FAULT
	local rank status=0
	for rank in 0 1 2; do faults "fault.$rank"; done
	# shellcheck disable=SC2086 # several words
	faults "fault.$1" $2
	: >err.0 && : >err.1 && : >err.2
	# shellcheck disable=SC2016 # of the inner shell
	start 0 2 env "LD_PRELOAD=$build/t/fault.so" sh -c 'TRECR_FAULT=$PWD/fault.$PMI_RANK exec "$@"' sh "${restart[@]}" ck
	for rank in 0 1 2; do
		await -t 60 -p "${pids[rank]}" 2>>await.err || { kill_all && return 1; }
		! wait "${pids[rank]}" 2>/dev/null || status=1
	done
	faults "fault.$1" fired && [ "$(cat err.? | grep -c 'cannot restart')" = 1 ] && sweep 60 && return $status
}
bad=
fails_at 0 "setting 2 check" && grep -q "cannot set up the first process" err.0 || bad+=" first-process"
for rank in 0 1; do
	for fault in "namespace 1 create" "raw 1 create" "raw 2 create" "trace 4 create" "trace 5 rebuild" "trace 1 registers" \
		"trace 1 registers kill"; do
		fails_at $rank "$fault" || bad+=" $rank:${fault// /-}"
	done
done
is "$bad" "" "a call fails at some moments of a restart" || explain err.*
# With the supervisor of rank 1 held up in the middle of its restart.
for rank in 0 1 2; do faults "fault.$rank"; done
faults fault.1 trace 1 registers hold && : >err.0 && : >err.1 && : >err.2
# shellcheck disable=SC2016 # of the inner shell
start 0 2 env "LD_PRELOAD=$build/t/fault.so" sh -c 'TRECR_FAULT=$PWD/fault.$PMI_RANK exec "$@"' sh "${restart[@]}" ck
for ((i = 0; i < 3000; i++)); do
	! faults fault.1 fired || break
	pause 0.02
done
step="held up" && faults fault.1 fired && step="an init is killed" && kill -KILL "$(init_of 1)" && { faults fault.1 off || true; } && step="the end" &&
	await -t 60 -p "${pids[0]}" 2>>await.err && ! wait "${pids[@]}" && sweep 60 && step="what is said" &&
	grep -qF 'rank 1: the init of the program (trecr-init) was killed' err.0
job_result "a rank's init is killed during a restart, and the reason told is that"
kill_all

step="another restart" && : >err.0 && restart_job 3 && step="the namespace" && share_a_namespace && step="its end" && job_ends
job_result "the next restart is good"
kill_all

# ---- other groups ----

# Ranks of one user that were started with different primary groups, of which a user namespace maps one.
job_arena groups
user=$((64000 + $$ % 500 * 2))
with_group() { # RANK COMMAND...: sets pids
	setpriv "--reuid=$user" "--regid=$((user + $1))" --clear-groups -- env "PMI_RANK=$1" PMI_SIZE=2 "${@:2}" \
		</dev/null >>"out.$1" 2>>"err.$1" &
	pids[$1]=$!
}
with_groups() { # COMMAND...
	with_group 0 "$@"
	with_group 1 "$@"
}
group_of() { # RANK: of its program
	awk '/^Gid:/ { print $2 - '$user', $3 - '$user' }' "/proc/$(program_of "${pids[$1]}")/status"
}
if ! am_root; then
	skip "two of different groups" "needs root"
elif ! have setpriv; then
	skip "two of different groups" "no setpriv"
else
	chmod 711 "$scratch"
	mkdir bin && cp "$build"/trecr-{run,ckpt,restart} "$victim/lockstep" bin && : >out.0 && : >out.1 && : >err.0 && : >err.1 && chown -R $user . && pids=()
	step=start && with_groups bin/trecr-run -d ck -- bin/lockstep && await -t 60 -p "${pids[0]}" out.0 '^ready$' >/dev/null &&
		await -t 60 -p "${pids[1]}" out.1 '^ready$' >/dev/null && step=checkpoint &&
		setpriv "--reuid=$user" "--regid=$user" --clear-groups -- bin/trecr-ckpt -t 60 ck >/dev/null 2>>ckpt.err &&
		kill_all && step=restart && with_groups bin/trecr-restart ck && all_in_a_round 2 && step="their groups" &&
		[ "$(group_of 0)" = "0 0" ] && [ "$(group_of 1)" = "1 1" ] && step="two namespaces" &&
		[ "$(namespace_of 0)" != "$(namespace_of 1)" ] && step="their end" && finish_job
	job_result "two of different groups keep them, in namespaces of their own"
	kill_all
	rm -rf "/tmp/trecr-$user"
fi

# ---- where namespaces cannot be entered ----

# Each has its own, and is told why.
job_arena unshared
step=start && start 0 1 trecr-run -d ck -- "$victim/lockstep" && await -t 60 -p "${pids[0]}" out.0 '^ready$' >/dev/null &&
	await -t 60 -p "${pids[1]}" out.1 '^ready$' >/dev/null && step=checkpoint && job_checkpoint && kill_all &&
	step=restart && start 0 1 confine --no-setns "${restart[@]}" ck && all_in_a_round 2 && step="two namespaces" &&
	[ "$(namespace_of 0)" != "$(namespace_of 1)" ] && step="what is said" && grep -qF 'setns(2) is not permitted' err.0 &&
	grep -qF 'setns(2) is not permitted' err.1 && step="second checkpoint" && job_checkpoint && step="its end" && finish_job
job_result "where setns(2) is forbidden, each rank is brought back in a namespace of its own"
kill_all

# ---- ids that two of them need ----

# In namespaces of their own they have the same.
job_arena same
if am_root && unshare --fork --pid --mount-proc true 2>/dev/null; then
	for rank in 0 1; do
		PMI_RANK=$rank PMI_SIZE=2 unshare --fork --kill-child --pid --mount-proc trecr-run -d ck -- "$victim/lockstep" \
			</dev/null >>"out.$rank" 2>>"err.$rank" &
		pids[rank]=$!
	done
	step=start && await -t 60 -p "${pids[0]}" out.0 '^ready$' >/dev/null && step=checkpoint && job_checkpoint && kill_all &&
		step=restart && restart_job 2 && step="two namespaces" && [ "$(namespace_of 0)" != "$(namespace_of 1)" ] &&
		grep -q 'in a pid namespace of its own' err.0 && step="its end" && finish_job
	job_result "two that need one id are in namespaces of their own"
	kill_all
else
	skip "two that need one id are in namespaces of their own" "needs root"
fi
done_testing
