#!/bin/bash
# trecr-ckpt -s ends a program when a restart has been tried beside it. One that would fail, or
# whatever becomes of the trial, leaves the program as it is, and nothing else behind.
TEST_LIMIT=${TEST_LIMIT:-300}
. "$(dirname "$0")/lib.sh"
. "$top/t/faults.sh"

split=$build/t/split
sim() { # COMMAND...: with the simulated driver
	export LD_LIBRARY_PATH=$build/t/sim
	RUN_FLAGS=--gpu=on launch "$@"
	local r=$?
	unset LD_LIBRARY_PATH
	return $r
}

# goes_on NAME PATTERN [OPTION...]: is not ended, for a reason that matches.
goes_on() {
	local name=$1 pattern=$2
	shift 2
	: >ckpt.err
	checkpoint -s "$@"
	is $? 2 "$name: the program is not ended" || explain
	like "$(told)" "^trecr-ckpt: the checkpoint $PWD/ck/ckpt-[0-9]+ is complete, but it could not be restarted here, so the program resumes: $pattern" \
		"and why"
	is "$(told | wc -l)" 1 "in one line"
}

# tries [OPTION...]: a checkpoint that says nothing but why it would fail.
tries() {
	: >ckpt.err
	checkpoint "$@"
}

# back_from CHECKPOINT: the program is killed with its supervisor, and restarted.
back_from() {
	kill -KILL "$sup" "$(program_of "$sup")"
	await -t 60 -p "$sup" && IMAGE=$1 restart_here
}

unharmed() {
	finish && [ "$status" = 0 ] && said_ok
	result $? "and the program is unharmed" || explain
	leaves_nothing "and nothing is left behind"
}

# ---- what would fail ----

# A driver that is another one by now.
arena driver
export SIM_MACHINE_FILE=$PWD/machine
if sim "$split/objects"; then
	checkpoint && checkpoint
	echo "version 12080" >machine
	goes_on "another driver" "process [0-9]+ \(objects\): the driver here is for CUDA 12.8"
	goes_on "once more" "process [0-9]+ \(objects\): "
	is "$(cd ck && echo ck* l*)" "ckpt-000001 ckpt-000002 ckpt-000003 ckpt-000004 latest lock" \
		"such checkpoints stay, and do not take the place of others"
	tries --try
	is $? 2 "a checkpoint with --try says so, too" || explain
	like "$(told)" "^trecr-ckpt: the checkpoint $PWD/ck/ckpt-000005 is complete, but it could not be restarted here: process [0-9]+ \(objects\): the driver here is for CUDA 12.8" \
		"and why"
	is "$(told | wc -l)" 1 "in one line"
	ok "without, nothing is tried" checkpoint
	rm machine
	tries --try
	is "$? $(told)" "0 " "with the driver as it was, there is nothing to be said" || explain
	ok "and the program can be brought back from such a checkpoint" back_from "$path"
	unharmed
else
	result 1 "a program with a driver starts" || explain
fi
# late PATTERN: the checkpoint is complete in the time given, a restart not, and that is said.
late() {
	local seconds
	for seconds in 1 2 4 8 16 32; do
		: >ckpt.err
		trecr-ckpt -s -t $seconds "$sup" >/dev/null 2>ckpt.err
		status=$?
		grep -q 'is complete, but' ckpt.err && break
	done
	is "$status" 2 "a driver that takes long to start: the program is not ended"
	like "$(told)" "^trecr-ckpt: the checkpoint $PWD/ck/ckpt-[0-9]+ is complete, but $1$" "and why"
}
arena together
launch "$victim/tree_shared"
tries --try
is "$? $(told)" "0 " "a tree of processes is tried while it is there" || explain
refused() { trecr-ckpt "$@" "$sup" 2>&1 | head -n 1; }
like "$(refused --try -s)" "--try and --stop exclude each other" "--try is not for what --stop does by itself"
like "$(refused --try --fork)" "--try and --fork exclude each other" "nor for a program that does not stand still"
like "$(trecr-ckpt --try "$PWD/job" 2>&1)" "--try is not for jobs of several members" "nor for a job"
unharmed
arena late
export SIM_MACHINE_FILE=$PWD/machine
if sim "$split/stateless"; then
	echo "start_ms 200000" >machine
	late "whether it can be restarted here is not known, so the program resumes: a restart had been tried for [0-9.]+ s when the time given for the checkpoint was over \(--timeout gives more time, --no-try leaves the trial out\)"
	rm machine
	ok "with more time it is ended" checkpoint -s
	await -t 60 -p "$sup"
	restart_here
	unharmed
else
	result 1 "a program with a driver starts, to be late" || explain
fi
arena untried
export SIM_MACHINE_FILE=$PWD/machine
if sim "$split/objects"; then
	echo "version 12080" >machine
	ok "a program is ended without a trial" checkpoint -s --no-try
	ok "if that is asked for" await -t 60 -p "$sup"
else
	result 1 "a program with a driver starts once more" || explain
fi
sweep >/dev/null
unset SIM_MACHINE_FILE

# A device that fails, a device that others have, and a driver that ends the process.
arena device
export SIM_FAIL_FILE=$PWD/fail
if sim "$split/stateless"; then
	echo cuInit:1:100 >fail
	goes_on "a device that fails" "process [0-9]+ \(stateless\): cuInit gave error 100"
	echo cuInit:1:-9 >fail
	goes_on "a driver that ends the process" "process [0-9]+ has ended while its lower half"
	echo cuInit:1:46 >fail
	: >ckpt.err
	ok "on a device that is for one process alone a program is ended" checkpoint -s
	like "$(cat ckpt.err)" "whether it can be restarted has not been tried: .*cuInit gave error 46" \
		"which is said"
	await -t 60 -p "$sup"
	rm fail
	restart_here
	unharmed
else
	result 1 "a program with a device starts" || explain
fi
unset SIM_FAIL_FILE

# Data that an earlier checkpoint was to lend.
arena damage
RUN_FLAGS=--incremental launch "$victim/idle" megabytes 8
checkpoint && inside=$(program_of "$sup")
perl -e 'open F, "+<", $ARGV[0] and seek F, 4 << 20, 0 and print F "x" x 4096' "$path/$inside"
goes_on "a damaged block of an earlier checkpoint" ".*is damaged \(checksum\)" --verify
ok "the next checkpoint does not borrow it" checkpoint -s --verify
await -t 60 -p "$sup"
restart_here
unharmed
arena good
launch "$victim/idle" megabytes 8
ok "a good one is ended" checkpoint -s --verify
ok "and its supervisor ends" await -t 60 -p "$sup"
sweep >/dev/null

# An ordinary user's program: who may not raise limits has no room for its mappings.
if am_root && have setpriv && unshare --user true 2>/dev/null; then
	arena user
	user=$as_nobody
	mkdir bin && cp "$build"/trecr-{run,ckpt,restart} "$victim"/{idle,mlock} bin
	tools=$PWD/bin
	chmod 711 "$scratch" && chmod 777 . "$TMPDIR" && mkdir -m 777 place
	start() { # VICTIM...
		: >out && : >err && chmod 666 out err
		(cd place && exec $user "$tools/trecr-run" -d ../ck -- "$tools/$1" "${@:2}") \
			</dev/null >out 2>err &
		sup=$!
		await -t 60 -p $sup out '^ready$' >/dev/null 2>await.err
	}
	start idle megabytes 100
	chmod 0 place
	goes_on "where its working directory is closed" \
		"cannot enter the working directory $PWD/place: Permission"
	chmod 777 place
	ok "with that open again it is ended" freeze_away
	$user bin/trecr-restart ck </dev/null >>out 2>restart.err &
	sup=$!
	await -t 60 -p $sup -e place/../ck/lock 2>/dev/null
	until trecr-ckpt --status $sup >/dev/null 2>&1; do [ -e /proc/$sup ] || break; done
	unharmed
	if start mlock; then
		$user prlimit --pid $sup --memlock=0:0
		goes_on "where it may lock less memory" "cannot .* RLIMIT_MEMLOCK"
		unharmed
	else
		skip "where it may lock less memory" "memory cannot be locked here"
		sweep >/dev/null
	fi
	# What can be known before is not tried.
	start idle megabytes 100
	$user prlimit --pid $sup --as=70000000:70000000
	: >ckpt.err
	not_ok "where it has less room, there is no checkpoint" quiet checkpoint -s
	like "$(cat ckpt.err)" "cannot checkpoint: .*RLIMIT_AS.*ulimit -Hv" "for that"
	unharmed
else
	skip "an ordinary user's program" "needs root, setpriv and user namespaces"
fi

# ---- what becomes of the trial ----

trecr-run() {
	exec $preload TRECR_FAULT="$PWD/fault" "$build/trecr-run" "$@"
}

# What is called in the trial fails, or kills it, one call after the other, until one comes too
# late to be met.
trials() { # CLASS PHASE [kill self]
	local n=1 rc
	while :; do
		[ -e "/proc/$sup" ] || launch "$victim/tree_shared" || { why="no start"; return 1; }
		faults fault "$1" $n "${@:2}"
		trecr-ckpt -t 60 -s "$sup" >/dev/null 2>ckpt.err
		rc=$?
		why="call $n of class $*: status $rc, $(cat ckpt.err)"
		case $rc in
		0) await -t 60 -p "$sup" 2>/dev/null || return 1 ;;
		2) one_line ckpt.err && trecr-ckpt "$sup" >/dev/null 2>ckpt.err || return 1 ;;
		*) return 1 ;;
		esac
		if ! faults fault off; then
			why=
			return 0
		fi
		fired=$((fired + 1))
		n=$((n * 4))
	done
}

all_trials() { # CLASSES [kill self]
	local classes=$1
	shift
	for phase in create rebuild settle; do
		for class in $classes; do
			fired=0
			trials "$class" $phase "$@" || return 1
			[ $fired = 0 ] || met+=" $phase/$class:$fired"
		done
	done
}

for how in "$(faults classes)" "raw trace read kill self"; do
	what="a fault"
	[ "${how% kill self}" = "$how" ] || what="SIGKILL"
	arena faults
	faults fault
	traces >before
	why="no start" met=''
	# shellcheck disable=SC2046
	launch "$victim/tree_shared" && why= &&
		all_trials "${how% kill self}" $([ "$what" = "a fault" ] || echo kill self)
	is "$why" "" "$what in the trial"
	note "$met"
	finish 2>/dev/null # it may have been ended
	sweep 2 >/dev/null
	ok "nothing is left behind" nothing_left || cat left >&2
done

# The supervisor is killed while it tries.
arena killed
bad=
for call in 1 12 25; do
	faults fault
	rm -rf ck
	launch "$victim/tree_shared" || { bad+=" start"; break; }
	inside=$(program_of "$sup")
	faults fault trace $call rebuild kill
	trecr-ckpt -s "$sup" >/dev/null 2>&1
	await -t 60 -p "$sup" 2>/dev/null
	wait "$sup"
	faults fault fired || bad+=" $call:not-met"
	kill -USR1 "$inside" || bad+=" $call:dead"
	await -t 60 -p "$inside" 2>/dev/null
	said_ok || bad+=" $call:$(tail -n 1 out)"
	sweep 60 || bad+=" $call:left"
done
is "$bad" "" "SIGKILL to the supervisor while it tries a restart"
done_testing
