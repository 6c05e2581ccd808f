# lib.sh - for t/*.t: TAP, a scratch directory, processes that do not outlive the test, and
# the protocol of a victim. To be sourced first thing:
#
#	. "$(dirname "$0")/lib.sh"
#
# A test waits for events (await, wait for a child) and never sleeps for synchronisation. On a slow machine,
# TEST_SLOW, a whole number, says how many times as long all may take: time limits are multiplied by it.
# shellcheck shell=bash

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${TRECR_BUILD:-$top/build}
tool=$build/t/tool
victim=$build/t/victim
export TRECR_BUILD=$build

# Everything runs inside a nest that ends what is left over (t/tool/nest.c).
if [ -z "${TRECR_NEST:-}" ]; then
	exec "$tool/nest" -t "${TEST_LIMIT:-600}" "${BASH:-bash}" "$0" "$@"
fi

set -u
# The shell reports each child that is killed, except for signals that it has a trap for; that it
# will never run this one is no matter.
# shellcheck disable=SC2173
trap : KILL
PATH=$build:$tool:$PATH
export LC_ALL=C
unset TRECR_DIR
# Of the make that runs the tests: its job server is not for programs under test.
unset MAKEFLAGS MFLAGS MAKELEVEL
# Leaks are looked for in the unit tests; LeakSanitizer itself uses ptrace. t/fault comes before
# the sanitizer on purpose.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:verify_asan_link_order=0}

scratch=$(mktemp -d "${TMPDIR:-/tmp}/trecr-t.XXXXXX") || exit 1
cd "$scratch" || exit 1
trap 'cd /; [ -n "${KEEP_SCRATCH:-}" ] && echo "# kept $scratch" || rm -rf "$scratch"' EXIT

slow=${TEST_SLOW:-1}

# timeout(1) with options and a limit that are whole numbers of seconds.
timeout() {
	local words=()
	while [[ $1 =~ ^(-.*|[0-9]+)$ ]]; do
		[[ $1 = -* ]] && words+=("$1") || words+=($(($1 * slow)))
		shift
	done
	command timeout "${words[@]}" "$@"
}

# ---- TAP ----

tests=0
failures=0
TODO=
planned=

plan() {
	planned=$1
	echo "1..$1"
}

done_testing() {
	[ -n "$planned" ] || echo "1..$tests"
}

# Behind done_testing, of a script that no prove reads: whether all that was run has passed, and anything was run.
all_passed() { # SKIPPED
	[ "$failures" = 0 ] || return
	[ "$tests" -gt "$1" ] || { diag "nothing has been run" && return 1; }
}

skip_all() {
	echo "1..0 # SKIP $*"
	exit 0
}

# Why a test failed, on standard error, which prove passes on; a note is seen with prove -v only.
diag() {
	note "$*" >&2
}

note() {
	printf '%s\n' "$*" | sed 's/^/# /'
}

# result STATUS NAME: one line of TAP. TODO, when set, says why a failure is expected.
result() {
	tests=$((tests + 1)) last_result=$1
	local mark=ok
	[ "$1" = 0 ] || mark="not ok"
	printf '%s %d - %s%s\n' "$mark" "$tests" "$2" "${TODO:+ # TODO $TODO}"
	[ "$1" = 0 ] || [ -n "$TODO" ] || {
		failures=$((failures + 1))
		diag "${0##*/}: failed: $2"
	}
	return "$1"
}

skip() { # NAME REASON
	tests=$((tests + 1))
	echo "ok $tests - $1 # SKIP $2"
}

ok() { # NAME COMMAND...: passes when the command succeeds
	local name=$1
	shift
	if "$@"; then result 0 "$name"; else
		result 1 "$name"
		diag "failed: $*"
		return 1
	fi
}

# For the command of ok and not_ok, whose own output is the test's.
quiet() {
	"$@" >/dev/null 2>>quiet.err
}

not_ok() { # NAME COMMAND...: passes when the command fails
	local name=$1
	shift
	if "$@"; then
		result 1 "$name"
		diag "did not fail: $*"
		return 1
	else result 0 "$name"; fi
}

is() { # GOT WANTED NAME
	if [ "$1" = "$2" ]; then result 0 "$3"; else
		result 1 "$3"
		diag "got    '$1'"
		diag "wanted '$2'"
		return 1
	fi
}

isnt() { # GOT UNWANTED NAME
	if [ "$1" != "$2" ]; then result 0 "$3"; else
		result 1 "$3"
		diag "got '$1'"
		return 1
	fi
}

like() { # TEXT REGEX NAME
	if [[ $1 =~ $2 ]]; then result 0 "$3"; else
		result 1 "$3"
		diag "text    '$1'"
		diag "pattern '$2'"
		return 1
	fi
}

unlike() { # TEXT REGEX NAME
	if [[ $1 =~ $2 ]]; then
		result 1 "$3"
		diag "text    '$1'"
		diag "pattern '$2'"
		return 1
	else result 0 "$3"; fi
}

# ---- one program under a supervisor ----
#
# RUN_FLAGS and RESTART_FLAGS are given to the tools; PATIENCE is how many seconds a program may take to start, to
# be checkpointed and to end. These functions set and use: sup, the supervisor's pid; its files are in the working
# directory: out and err of the program, run.err/ckpt.err/restart.err of the tools, and ck, the
# directory of checkpoints.

# A fresh directory for the next scenario.
arena() {
	arenas=$((${arenas:-0} + 1))
	cd "$scratch" && mkdir -p "$arenas.$1" && cd "$arenas.$1" || exit 1
}

# launch COMMAND...: with RUN_FLAGS under trecr-run, until it says that it is ready. Fails
# when it does not; skip_reason is set when it says that this machine cannot do it.
launch() {
	skip_reason=
	rm -f out
	# shellcheck disable=SC2086
	trecr-run -d ck ${RUN_FLAGS:-} -- "$@" </dev/null >out 2>err &
	sup=$!
	local line
	line=$(await -t "${PATIENCE:-60}" -p $sup out '^(ready|skip .*)$' 2>await.err) || return 1
	if [ "${line#skip }" != "$line" ]; then
		skip_reason=${line#skip }
		return 1
	fi
}

# started COMMAND...: launch, or a failed test.
started() {
	launch "$@" && return
	result 1 "${1##*/} starts"
	explain
	return 1
}

# checkpoint [OPTION...] of $sup; path is the checkpoint's.
checkpoint() {
	path=$(trecr-ckpt -t $((${PATIENCE:-60} * slow)) "$@" "$sup" 2>>ckpt.err)
}

# Whether nothing is left of unfinished checkpoints. Old ones are removed when the answer is out, and the
# next answer comes after that.
nothing_unfinished() {
	trecr-ckpt --status "$sup" >/dev/null 2>&1 # it may have ended
	[ -z "$(find ck -name '*.tmp')" ]
}

# What a checkpoint has said, but for System V objects, which may be those of a test that runs
# beside: nothing tells whose they are.
told() { # [FILE...]
	grep -hvE '^trecr-(ckpt|run): (rank [0-9]+: )?not in the checkpoint: System V' "${@:-ckpt.err}"
}

# await_dir NAME: until a checkpoint of this name is complete.
await_dir() {
	await -t 60 -p "$sup" -e "$1" 2>>await.err
}

# The program's (not the supervisor's) process id as seen from here; nothing when it is gone.
program_of() {
	local child
	# Of ranks that share a namespace, one has made its first process, too.
	for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
		[ "$(cat "/proc/$child/comm" 2>/dev/null)" = trecr-namespace ] || break
	done
	# In a namespace, its init comes between.
	if [ -n "$child" ] && [ "$(readlink "/proc/$child/ns/pid")" != \
		"$(readlink "/proc/$1/ns/pid")" ]; then
		local below
		below=$(cat "/proc/$child/task/$child/children") && child=${below%% *}
	fi
	echo "$child"
}

# Whether restarts can be tried here (doc/decisions/trial.md).
can_try() {
	local user=--user
	[ "$(id -u)" != 0 ] || user=
	: "${tries:=$(unshare $user --fork --pid --mount --ipc --mount-proc true 2>/dev/null && echo yes || echo no)}"
	[ "$tries" = yes ]
}

# freeze_away [OPTION...]: checkpoint and end, when a restart has been tried: the supervisor must be
# gone afterwards too.
freeze_away() {
	checkpoint -s "$@" && await -t "${PATIENCE:-30}" -p "$sup" 2>>await.err || return
	! grep 'has not been tried' ckpt.err >>await.err || ! can_try
}

# restart_detached [OPTION...]: from the newest checkpoint in ck, or from IMAGE.
restart_detached() {
	status=
	rm -f pidfile
	# shellcheck disable=SC2086
	trecr-restart -D --pidfile pidfile ${RESTART_FLAGS:-} "$@" "${IMAGE:-ck}" \
		</dev/null >restart.out 2>>restart.err &&
		sup=$(cat restart.out) && [ -n "$sup" ] && [ "$sup" -gt 1 ]
}

# restart_here [OPTION...]: in the foreground, as a child of this shell, for its status.
restart_here() {
	status= # an earlier supervisor's says nothing about this one
	rm -f pidfile
	# shellcheck disable=SC2086
	trecr-restart --pidfile pidfile ${RESTART_FLAGS:-} "$@" "${IMAGE:-ck}" \
		</dev/null >>out 2>>restart.err &
	sup=$!
	await -t 120 -p $sup pidfile '^[0-9]+$' >/dev/null 2>>await.err
}

# Tell the program to go on, and give it time to end; status is the supervisor's.
finish() {
	status=
	kill -USR1 "$sup" || return 1
	await -t "${FINISH_LIMIT:-${PATIENCE:-60}}" -p "$sup" 2>>await.err || return 1
	wait "$sup" 2>/dev/null
	status=$?
}

# What a failed scenario left. When no test has reported the failure, this one does.
explain() {
	local f
	[ "${last_result:-0}" != 0 ] || [ -n "${skip_reason:-}" ] || result 1 "every step so far"
	for f in out err ckpt.err restart.err await.err left.behind "$@"; do
		[ ! -s "$f" ] || diag "$(tail -n 12 "$f" | cut -c1-300 | sed "s|^|$f: |")"
	done
}

# Ends all that a scenario left. Fails when something was there to be ended, and says what.
sweep() {
	local left
	# The shell's own words about children that were killed are of no interest.
	{
		left=$(nest --sweep -g "${1:-0}")
		[ -z "${sup:-}" ] || wait "$sup"
		wait
	} 2>/dev/null
	[ -z "$left" ] || {
		note "left behind: $left" | tee left.behind
		return 1
	}
}

# leaves_nothing NAME: all that the scenario has started ends, the init of a namespace a moment after
# its supervisor.
leaves_nothing() {
	sweep 60 >/dev/null
	result $? "$1" || explain
}

# The victim has said ready and ok and nothing else.
said_ok() {
	[ "$(cat out)" = "ready
ok" ]
}

twice() {
	freeze_away && step="first restart" &&
		restart_detached && step="second checkpoint" &&
		freeze_away && step="second restart" &&
		restart_here && step="running on" &&
		finish && step="its own checks" &&
		[ "$status" = 0 ] && said_ok && step="leaving nothing behind" &&
		sweep 60
}

# What comes back in reverse order is right after two restarts.
once() {
	freeze_away && step="restart" && restart_here && step="running on" &&
		finish && step="its own checks" &&
		[ "$status" = 0 ] && said_ok && step="leaving nothing behind" &&
		sweep 60
}

once_and_on() {
	checkpoint && step="running on" &&
		finish && step="its own checks" &&
		[ "$status" = 0 ] && said_ok && step="leaving nothing behind" &&
		sweep 60
}

# scenario NAME HOW COMMAND...: launch and do HOW, one result. ONLY, a pattern, leaves out other names.
scenario() {
	local name=$1 how=$2 step=start
	shift 2
	skip_reason=
	[[ $name =~ ${ONLY:-} ]] || return 0
	arena x
	if launch "$@" && step="first checkpoint" && "$how"; then
		result 0 "$name"
	elif [ -n "$skip_reason" ]; then
		skip "$name" "$skip_reason"
	else
		result 1 "$name"
		diag "failed at: $step${status:+ (status $status)}"
		explain
	fi
	sweep >/dev/null
	status=
}

# cycle VICTIM [ARG...]: the whole protocol, two results. A victim is a file of t/victim, or
# a command with a slash in it. With QUICK (make quick) only the first.
status=
cycle() {
	local v=$1
	shift
	case $v in */*) ;; *) v=$victim/$v ;; esac
	local name=${v##*/}${1:+ $*}
	scenario "$name: restarted twice in a row" twice "$v" "$@"
	[ -n "$skip_reason${QUICK:-}" ] || run_on "$v" "$@"
}

# run_on VICTIM [ARG...]: one checkpoint, no restart.
run_on() {
	local v=$1
	shift
	case $v in */*) ;; *) v=$victim/$v ;; esac
	scenario "${v##*/}${1:+ $*}: runs on after a checkpoint" once_and_on "$v" "$@"
}

# ---- programs as their users run them ----
#
# A program prints "ready" when it is to be saved, and ends when the file "go" is there. What it
# gives, after two restarts in a row, is what an undisturbed run gives: all that it prints after
# "ready", and the files named in RESULT. PREPARE is a command that makes what it needs in a fresh
# directory. One result.

given() {
	sed 1d out
	# shellcheck disable=SC2086
	[ -z "${RESULT:-}" ] || cksum $RESULT
}

undisturbed() {
	: >go
	"$@" </dev/null >out 2>err && given >../undisturbed || return 1
	cd .. && rm -rf x && mkdir x && cd x || exit 1
}

disturbed() {
	step="first checkpoint" && freeze_away &&
		step="first restart" && restart_detached && step="second checkpoint" &&
		freeze_away && step="second restart" && restart_here && step="running on" &&
		: >go && await -t 120 -p "$sup" 2>>await.err || return 1
	wait "$sup"
	status=$?
	step="its status"
	[ $status = 0 ] && given >../restarted && step="the same result" &&
		diff ../undisturbed ../restarted >>err &&
		step="leaving nothing behind" && sweep 60
}

application() { # NAME COMMAND...
	local name=$1 step
	shift
	arena application
	mkdir x && cd x || exit 1
	step="an undisturbed run"
	${PREPARE:-:} && undisturbed "$@" && ${PREPARE:-:} &&
		step=start && launch "$@" && disturbed
	result $? "$name"
	local failed=$?
	[ $failed = 0 ] || { diag "failed at: $step${status:+ (status $status)}" && explain; }
	sweep >/dev/null
	status=
	return $failed
}

# A port at which nobody listens, outside the range from which Linux chooses one for a socket without a port.
free_port() {
	local port
	while port=$((20000 + RANDOM % 12000)); do
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	echo $port
}

# apart FLAGS ARG...: the test begins anew in namespaces of its own (unshare FLAGS), where that is
# allowed. TRECR_APART says then that it is there.
apart() {
	am_root && [ -z "${TRECR_APART:-}" ] && unshare "$1" true 2>/dev/null || return
	cd "$top" && rm -rf "$scratch"
	TRECR_APART=1 exec unshare "$1" -- "$BASH" "t/${0##*/}" "${@:2}"
}

# On a file system that is no tmpfs, whose files count as shared memory where they are mapped: if the
# scratch directory is on one, the test begins anew elsewhere.
on_disk() {
	local place
	[ "$(stat -f -c %T "$scratch")" = tmpfs ] || return 0
	for place in /var/tmp "$build"; do
		if [ -w "$place" ] && [ "$(stat -f -c %T "$place")" != tmpfs ]; then
			cd "$top" && rm -rf "$scratch"
			TMPDIR=$place exec "$BASH" "t/${0##*/}" "$@"
		fi
	done
	skip_all "there is no file system here but a tmpfs"
}

# A queue that nobody has used (t/victim/sysv.c has one) is left where it is by a restart in a namespace, as
# an ordinary user's are.
remove_awaited() {
	local file
	am_root || for file in "$scratch"/*/awaited; do
		ipcrm -q "$(cat "$file")" 2>/dev/null
	done
}

# From here on trecr lacks the capabilities by which root gets at memory without a name.
drop_memory_capabilities() {
	mkdir weak || exit 1
	for tool in run ckpt restart; do
		printf '#!/bin/sh\nexec setpriv --bounding-set=-sys_admin,-checkpoint_restore -- %s "$@"\n' \
			"$build/trecr-$tool" >weak/trecr-$tool
	done
	chmod 755 weak/*
	PATH=$scratch/weak:$PATH
}

# In a network namespace of its own.
loopback_up() {
	perl -e '$up = pack "a16 s x22", "lo", 1;
		socket(S, 2, 2, 0) && ioctl(S, 0x8914, $up) || die "$!"'
}

# Bash's and dash's, for programs that wait for it.
wait_go='while [ ! -e go ]; do sleep 0.05; done'

# ---- who runs this ----

# Before a command of root's: as an ordinary user. (All of a test: mk/as_user.sh.)
as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups --"

am_root() {
	[ "$(id -u)" = 0 ]
}

have() {
	command -v "$1" >/dev/null
}
