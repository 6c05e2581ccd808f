#!/bin/bash
# One process more in a tree costs a checkpoint no more calls of ptrace(2) than it did: most of them make it run or stop.
# It costs no thread, as those that write memory go from one process to the next, and the event loop is not woken for it.
# And it has no more files of /proc opened: none about the supervisor itself, which is the same for all.
# strace counts the calls. In an IPC namespace of its own, where others use semaphores that it could have operated on, too
# (SEM_UNDO).
if [ -z "${OWN_IPC:-}" ]; then
	own=(unshare --ipc)
	[ "$(id -u)" = 0 ] || own+=(--user --map-current-user)
	if "${own[@]}" true 2>/dev/null; then
		OWN_IPC=yes exec "${own[@]}" "$BASH" "$0"
	fi
fi
. "$(dirname "$0")/lib.sh"

[ -n "${OWN_IPC:-}" ] || skip_all "no IPC namespace of its own"
have strace || skip_all "no strace"
grep -q '^Seccomp:.*0' /proc/self/status || skip_all "under a seccomp filter calls are made one by one"

# Sets of semaphores that another program is using.
use_semaphores() {
	python3 -c '
import ctypes, signal
libc = ctypes.CDLL(None)
for _ in range(10):
    assert libc.semop(libc.semget(0, 1, 0o1600), (ctypes.c_short * 3)(0, 1, 0), 1) == 0
print("used", flush=True)
signal.pause()' >used &
	await -t 60 -p $! used '^used$' >/dev/null
}

# Calls that the supervisor makes for a checkpoint of a tree of so many processes.
count_calls() { # PROCESSES
	local tracer
	arena "$1"
	! have python3 || use_semaphores
	# shellcheck disable=SC2016
	launch sh -c 'i=1; while [ $i -lt '"$1"' ]; do sleep 1000 & i=$((i + 1)); done; echo ready; wait'
	strace -f -o calls -p "$sup" 2>strace.err &
	tracer=$!
	await -t 60 -p $tracer strace.err attached >/dev/null
	checkpoint || explain
	kill -INT $tracer
	wait $tracer
	count=$(grep -c ' ptrace(' calls)
	threads=$(grep -c ' clone3\?(' calls)
	wakes=$(grep -c ' poll(' calls)
	# But for what is looked at time and again during a freeze, which takes longer on a busy machine.
	grep ' openat(' calls | grep -v '/task"\|/children"\|"/proc/self/task/[0-9]*/syscall"' >opened
	files=$(wc -l <opened)
	# But for the clock of its processor, which is read beside that of each process that sleeps.
	own_files=$(grep "\"/proc/\(self\|$sup\)/" opened | grep -vc '/sched"')
	sweep >/dev/null
	ipcrm --all=sem
}

have python3 || skip "semaphores of others" "no python3"
count_calls 4
few=$count few_threads=$threads few_wakes=$wakes few_own=$own_files few_files=$files
count_calls 24
each=$(((count - few) / 20))
ok "a process takes $each, and 40 were counted once" [ $each -gt 0 -a $each -le 46 ]
opened=$(((files - few_files) / 20))
ok "it has $opened files opened, and 39 were counted once" [ $opened -gt 0 -a $opened -le 43 ]
ok "of those of /proc about the supervisor itself none ($own_files for 24, $few_own for 4)" [ "$own_files" -lt $((few_own + 20)) ]
ok "and no thread ($threads for 24, $few_threads for 4)" [ "$threads" -lt $((few_threads + 20)) ]
ok "the event loop is not woken for each ($wakes times for 24, $few_wakes for 4)" [ "$wakes" -lt $((few_wakes + 20)) ]

# Threads that ten checkpoints at an interval start, of a program whose memory is written from a copy.
count_writers() { # [OPTION...]
	local tracer last
	arena "writers${*// /}"
	RUN_FLAGS="-i 1 $*"
	launch "$victim/tree_many" 1 60000 && await_dir ck/ckpt-000001
	strace -f -e trace=clone,clone3,rename,renameat,renameat2 -o calls -p "$sup" 2>strace.err &
	tracer=$!
	await -t 60 -p $tracer strace.err attached >/dev/null
	last=$((10#$(readlink ck/latest | tr -dc 0-9) + 5))
	await_dir "$(printf 'ck/ckpt-%06d' $last)"
	kill -INT $tracer
	wait $tracer
	# From the end of one to the end of another: it gets its name.
	writers=$(awk '/clone3?\(/ { n++ }
		/rename[^(]*\([^"]*"ckpt-[0-9]*\.tmp"/ { if (ends++) all += n; n = 0 }
		END { print int(10 * all / (ends - 1)) }' calls)
	sweep >/dev/null
	RUN_FLAGS=
}

processors=$(nproc)
if [ "$processors" -gt 1 ]; then
	count_writers -j $((processors < 4 ? processors : 4))
	all=$writers
	count_writers
	ok "at an interval, while the program runs, fewer threads write ($writers instead of $all in ten)" [ "$writers" -lt "$all" ]
else
	skip "at an interval, while the program runs, fewer threads write" "there is one processor"
fi
done_testing
