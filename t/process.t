#!/bin/bash
# What belongs to the process as a whole.
. "$(dirname "$0")/lib.sh"

cycle process
cycle credentials
cycle jail
cycle settings
cycle membarrier
cycle seccomp
cycle plugins "$victim/plugin.so"

# Containers put all of their processes under a filter, trecr included. It does not go with the
# program.
arena confined
confine trecr-run -d ck -- "$victim/process" </dev/null >out 2>err &
sup=$!
if await -t 60 -p $sup out '^ready$' >/dev/null 2>await.err; then
	ok "a program under trecr's own filter can be saved" checkpoint || explain
	freeze_away
	restart_here
	like "$(cat "/proc/$(program_of "$sup")/status")" $'Seccomp:\t0' "and comes back without"
	finish
	is "$status" 0 "and whole" || explain
else
	skip "a program under trecr's own filter" "no seccomp filters"
fi
sweep >/dev/null
rm -f out
confine --no-kcmp trecr-run -d ck -- "$victim/idle" count </dev/null >out 2>err &
sup=$!
if await -t 60 -p $sup out '^ready$' >/dev/null 2>await.err; then
	: >ckpt.err
	not_ok "a filter that forbids kcmp(2)" checkpoint
	like "$(cat ckpt.err)" "kcmp\\): Operation not permitted \\(a container that forbids this call" \
		"is named, and what allows the call"
	unlike "$(cat ckpt.err)" Landlock "and Landlock, which may be, is not"
	finish
	is "$status" 0 "the program is whole" || explain
else
	skip "a filter that forbids kcmp(2)" "no seccomp filters"
fi
sweep >/dev/null

# It is said when the program starts, too, as of other calls.
for call in kcmp ptrace pidfd-open; do
	rm -f out
	confine --no-$call trecr-run -d ck -- "$victim/idle" </dev/null >out 2>err &
	sup=$!
	if await -t 60 -p $sup out '^ready$' >/dev/null 2>await.err; then
		like "$(cat err)" "no checkpoint will be possible, as the kernel refuses ${call/-/_}\\(2\\)(, pidfd_getfd\\(2\\))? \\(a container" \
			"a filter that forbids $call is told of at the start"
		finish
		is "$status" 0 "and signals are passed on" || explain
	else
		skip "a filter that forbids $call is told of at the start" "no seccomp filters"
	fi
	sweep >/dev/null
done

# So is where a checkpoint or restart meets it. Yama is not in every kernel: a file of its name is laid over /proc.
ptrace_refused() { # NAME PATTERN OPTION [YAMA]
	local over=()
	[ -z "${4:-}" ] || over=(unshare -m "$BASH" -c 'mount -t tmpfs tmpfs /proc/sys/kernel && mkdir /proc/sys/kernel/yama &&
		echo '"$4"' >/proc/sys/kernel/yama/ptrace_scope && exec "$@"' -)
	arena "ptrace-$1"
	"${over[@]}" confine "$3" trecr-run -d ck -- "$victim/idle" </dev/null >out 2>err &
	sup=$!
	if await -t 60 -p $sup out '^ready$' >/dev/null 2>await.err; then
		: >ckpt.err
		not_ok "$1: a checkpoint is refused" checkpoint
		like "$(cat ckpt.err)" "cannot attach to process [0-9]+ \(.*\): $2" "$1: with the reason, and what helps" || explain
		[ -z "${4:-}" ] || like "$(cat err)" "no checkpoint will be possible: $2" "$1: which is told of at the start, too"
		finish
		is "$status" 0 "$1: the program is whole" || explain
		sweep >/dev/null
		launch "$victim/idle" && freeze_away
		not_ok "$1: a restart is refused" quiet "${over[@]}" confine "$3" trecr-restart ck
		like "$(cat restart.err quiet.err 2>/dev/null)" "cannot attach to .*$2" "$1: with the reason, and what helps, too" || explain
	else
		skip "$1: a checkpoint is refused" "no seccomp filters"
	fi
	sweep >/dev/null
}
ptrace_refused container "ptrace\\(2\\) is forbidden here \\(by a container\\?.*--cap-add SYS_PTRACE" --no-ptrace
ptrace_refused policy ".*probably a security policy of this machine.*administrator" --no-attach
if am_root && unshare -m mount -t tmpfs tmpfs /proc/sys/kernel 2>/dev/null; then
	ptrace_refused Yama "kernel.yama.ptrace_scope is 3, .*sysctl.d" --no-attach 3
else
	skip "Yama: a checkpoint is refused" "nothing can be mounted here"
fi

# What a kernel says that is older than its name tells (before Linux 5.13).
rm -f out
confine --no-rseq-query trecr-run -d ck -- "$victim/idle" </dev/null >out 2>err &
sup=$!
if await -t 60 -p $sup out '^ready$' >/dev/null 2>await.err; then
	: >ckpt.err
	not_ok "a kernel that does not show rseq areas" checkpoint
	like "$(cat ckpt.err)" "does not show where thread [0-9]+ .*Linux 5\\.13" "is named"
	finish
	is "$status" 0 "the program is whole" || explain
else
	skip "a kernel that does not show rseq areas" "no seccomp filters"
fi
sweep >/dev/null

# Keyrings are lost, which is told.
arena keyrings
cat >keyrings.py <<-'END'
	import ctypes, signal, sys
	keyctl = lambda *a: ctypes.CDLL(None, use_errno=True).syscall(250, *a)
	if keyctl(1, None) < 0 or keyctl(0, -2, 1) < 0:
	    sys.exit(print("skip no keyrings here"))
	mine = keyctl(0, -3, 0), keyctl(0, -2, 0)
	signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
	print("ready", flush=True)
	signal.sigwait([signal.SIGUSR1])
	print("ok" if mine == (keyctl(0, -3, 0), keyctl(0, -2, 0)) else "other keyrings")
END
if ! have python3; then
	skip "a notice names keyrings" "no python3"
elif launch python3 keyrings.py; then
	checkpoint
	like "$(cat ckpt.err)" "has a keyring of its own, which is not saved.*has joined a session keyring, which is not saved" \
		"a notice names keyrings"
	finish
	is "$(cat out)" "ready
ok" "and left alone" || explain
elif [ -n "$skip_reason" ]; then
	skip "a notice names keyrings" "$skip_reason"
else
	ok "a program with keyrings starts" false || explain
fi
sweep >/dev/null

# So is a login id.
arena login
cat >login.py <<-'END'
	import signal, sys
	try:
	    old = int(open('/proc/self/loginuid').read())
	    new = 1000 if old != 1000 else 1001
	    open('/proc/self/loginuid', 'w').write(str(new))
	except OSError:
	    sys.exit(print("skip there is no login id that can be set"))
	signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
	print("ready", flush=True)
	signal.sigwait([signal.SIGUSR1])
	now = int(open('/proc/self/loginuid').read())
	print("kept" if now == new else "lost" if now == old else now)
END
if ! have python3; then
	skip "a notice names a login id" "no python3"
elif launch python3 login.py; then
	checkpoint
	like "$(cat ckpt.err)" "has set its login id \(/proc/PID/loginuid is 100[01]\), which is not saved" \
		"a notice names a login id"
	finish
	is "$(tail -n 1 out)" kept "and left alone" || explain
	restart_here && finish
	is "$(tail -n 1 out)" lost "and lost at a restart" || explain
else
	skip "a notice names a login id" "${skip_reason:-it does not start}"
fi
sweep >/dev/null

# A program that lists processes, as htop, has files of others open for a moment. Here it is that in which a
# checkpoint is tried for the first time.
cat >"$scratch/lists.py" <<-'END'
	import os, signal, sys
	signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
	what = os.open(sys.argv[1], os.O_RDONLY)
	print("ready", flush=True)
	signal.sigwait([signal.SIGUSR1])
	os.close(what)
	print("closed", flush=True)
	signal.sigwait([signal.SIGUSR1])
	print("ok")
END
arena lists
if ! have python3; then
	skip "a file of another process that is open for a moment" "no python3"
else
	TRECR_TEST_TRIES_AGAIN=$PWD/again trecr-run -d ck -- \
		python3 "$scratch/lists.py" "/proc/$$/status" </dev/null >out 2>err &
	sup=$!
	await -t 60 -p $sup out '^ready$' >/dev/null 2>await.err
	# In which the first attempt is to fail.
	not_ok "a checkpoint that is not answered in time fails" trecr-ckpt -t $((2 * slow)) "$sup" 2>late.err
	like "$(cat late.err)" "not answered within the time given \(-t\); the checkpoint is cancelled" \
		"and says what becomes of it"
	rm again
	checkpoint &
	await -t 60 -p $! -e again 2>>await.err
	kill -USR1 "$(program_of $sup)"
	await -t 60 -p $sup out '^closed$' >/dev/null 2>>await.err
	rm -f again
	ok "a file of another process that is open for a moment stops no checkpoint" wait $! || explain
	finish
	is "$(tail -n 1 out)" ok "and the program goes on" || explain
fi
sweep >/dev/null

arena none
launch "$victim/idle" && checkpoint
is "$(told)" "" "and says nothing of a program without any"
sweep >/dev/null
done_testing
