#!/bin/bash
# System V objects and POSIX message queues.
. "$(dirname "$0")/lib.sh"

# Objects of other tests are nobody's business.
apart -i

for v in sysv sysv_given sysv_interleaved sysv_modes mqueue; do
	cycle $v
	RESTART_FLAGS=--namespace
	scenario "$v: restarted twice in a namespace" twice "$victim/$v"
	RESTART_FLAGS=
done

# While the program runs on, a second one from its checkpoint: all its objects are in use.
arena second
launch "$victim/sysv" && checkpoint
first=$sup
restart_detached --force
second=$sup
like "$(cat restart.err)" 'System V .* is in use|process id .* is in use' \
	"a second one is brought back in a namespace"
sup=$second
finish && [ "$(cat out)" = "ready" ]
sup=$first
finish && [ "$status" = 0 ] && said_ok
result $? "and the first has not noticed" || explain
sweep >/dev/null

if have python3; then
	arena outside
	launch "$victim/refuse_memory" sysv-shm
	id=$(sed -n 's/^segment //p' out)
	python3 -c "
import ctypes, signal
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_long
open('attached', 'w').write('%d\n' % (libc.shmat($id, None, 0) > 0))
signal.pause()" &
	await -t 60 -p $! attached 1 >/dev/null
	not_ok "a segment that another process has attached, too, is refused" checkpoint
	like "$(cat ckpt.err)" "System V shared memory $id .*: a process that is not being saved" \
		"and named"
	finish
	is "$status" 0 "the program runs on" || explain
	sweep >/dev/null
fi

# What nobody has used since a restart is the program's all the same.
if have python3; then
	arena unused
	# shellcheck disable=SC2016
	launch python3 -c '
import ctypes, signal
libc = ctypes.CDLL(None)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
queue, room = libc.msgget(0, 0o1600), ctypes.create_string_buffer(bytes([1] + [0] * 63))
assert libc.msgsnd(queue, room, 5, 0) == 0 and libc.msgrcv(queue, room, 5, 0, 0) == 5
made = [libc.semget(0, 1, 0o1600), libc.shmget(0, 4096, 0o1600)]
assert libc.semop(made[0], (ctypes.c_short * 3)(0, 1, 0), 1) == 0
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
same = libc.msgsnd(queue, room, 5, 0) == 0 and libc.semctl(made[0], 0, 12) == 1
libc.msgctl(queue, 0, None), libc.semctl(made[0], 0, 0), libc.shmctl(made[1], 0, None)
print("ok" if same else "differs", flush=True)'
	kept=
	while [ ${#kept} -lt 2 ]; do
		freeze_away || break
		ipcs -q -s | awk '$1 ~ /^0x/ { print NF == 5 ? "-s" : "-q", $2 }' >gone
		! am_root || xargs -r ipcrm <gone
		restart_detached || break
		kept=$kept.
	done
	finish && await -t 60 out '^ok$' >/dev/null
	result $? "System V objects that nobody has used since a restart are in the next checkpoint" || explain
	# Without a namespace of our own, objects of other tests are.
	! am_root || is "$(cat ckpt.err)" "" "and are not doubted"
	sweep >/dev/null
fi

# Older than the program, which is the last to have used it.
if have python3 && have ipcmk; then
	arena older
	id=$(ipcmk -S 1 | sed -n 's/^Semaphore id: //p')
	# The kernel's times are whole seconds, and so is what counts as older.
	await -t 4 -e never 2>/dev/null
	cat >use.py <<'PROGRAM'
import ctypes, signal, sys
libc = ctypes.CDLL(None)
number, add = int(sys.argv[1]), int(sys.argv[2])
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
undo = 0x1000 if sys.argv[3:] == ["undo"] else 0
libc.semop(number, (ctypes.c_short * 3)(0, add, undo), 1)
print("ready", flush=True)
if len(sys.argv) > 3:
    signal.sigwait([signal.SIGUSR1])
    if undo:
        libc.semop(number, (ctypes.c_short * 3)(0, -add, undo), 1)
        print("undone", flush=True)
        signal.sigwait([signal.SIGUSR1])
    print("ok" if libc.semctl(number, 0, 12) == 5 else "differs", flush=True)
PROGRAM
	launch python3 use.py "$id" 5 wait && freeze_away
	python3 use.py "$id" 4 >/dev/null
	restart_here && finish && [ "$status" = 0 ] && said_ok
	result $? "semaphores that are older than the program are as they were" || explain
	sweep >/dev/null
	ipcrm -s "$id"

	# Somebody else used them last, and has ended; but the program's end does something to them.
	arena undone
	cp ../*.older/use.py .
	# shellcheck disable=SC2016
	launch bash -c 'ipcmk -S 1 >made; exec python3 use.py $(sed -n "s/^Semaphore id: //p" made) 7 undo'
	id=$(sed -n 's/^Semaphore id: //p' made)
	python3 use.py "$id" 1 >/dev/null
	freeze_away && ipcrm -s "$id" && restart_here
	kill -USR1 "$sup"
	await -t 60 -p "$sup" out undone >/dev/null
	# As an ordinary user they are in a namespace, not to be looked at from here.
	if [ "$(id -u)" = 0 ]; then
		is "$(cat ckpt.err)$(ipcs -s -i "$id" | awk '$1 == 0 { print $2 }')" 1 \
			"semaphores that the program's end changes are its own, even if another process used them last" || explain
	fi
	sweep >/dev/null
	ipcrm -s "$id" 2>/dev/null

	# And another one uses them..
	arena shared
	id=$(ipcmk -S 1 | sed -n 's/^Semaphore id: //p')
	await -t 4 -e never 2>/dev/null
	cp ../*.older/use.py .
	launch python3 use.py "$id" 3 undo
	python3 use.py "$id" 5 wait >other &
	other=$!
	await -t 60 -p $other other ready >/dev/null
	not_ok "what the program's end does to semaphores that others use is refused" checkpoint
	like "$(cat ckpt.err)" "process [0-9]+ \(python3\) has changes to undo at its end \(SEM_UNDO\) in System V semaphores $id" \
		"and named"
	kill -USR1 "$sup"
	await -t 60 -p "$sup" out undone >/dev/null
	kill -USR1 $other
	wait $other
	# Another file, as the shell may not yet have emptied the first when it is looked at.
	python3 use.py "$id" 5 wait >another &
	other=$!
	await -t 60 -p $other another ready >/dev/null
	ok "when there is nothing left to be done it is saved" checkpoint || explain
	kill $other
	python3 use.py "$id" -5 >/dev/null
	finish && [ "$status" = 0 ] && [ "$(tail -n 1 out)" = ok ]
	result $? "and the program has not noticed" || explain
	sweep >/dev/null
	ipcrm -s "$id"
fi

# What was made by a process that has ended, or has not been used by any: whose it is cannot be
# known, so it stays where it is, which is said.
if have ipcmk; then
	arena doubts
	launch bash -c "ipcmk -M 4096; ipcmk -Q; ipcmk -S 2; exec $victim/idle"
	id=$(sed -n 's/^Shared memory id: //p' out)
	queue=$(sed -n 's/^Message queue id: //p' out)
	set=$(sed -n 's/^Semaphore id: //p' out)
	times() {
		ipcs -m -i "$id" | grep time
	}
	times >before
	freeze_away
	like "$(cat ckpt.err)" "not in the checkpoint: [^:]*System V shared memory ${id}[ ,][^:]*as the processes that used \
it have ended, and nothing says whether they were the program's" "memory of a process that has ended is not saved, which is said"
	like "$(cat ckpt.err)" "not in the checkpoint: [^:]*semaphores $set, [^:]*queue $queue, as nobody has used it yet, and \
nothing says whether the program made it" "nor is what nobody has used yet" || explain
	restart_detached
	is "$(grep -v 'requires CAP_CHECKPOINT_RESTORE here; for it only user' restart.err)" "" "it is there still"
	is "$(times)" "$(cat before)" "untouched"
	ok "and so is that" quiet ipcs -q -i "$queue"
	nest --sweep >/dev/null
	ipcrm -m "$id" -q "$queue" -s "$set"
	restart_detached
	is "$(ipcs -m -i "$id" 2>/dev/null | grep -o "shmid=$id")" "" "what its owner has removed does not come back"
	sweep >/dev/null
fi

# What a user's program keeps its own user from reading is not lost without a word.
if have python3 && ! am_root; then
	arena closed
	launch python3 -c '
import ctypes, os, signal, struct
libc = ctypes.CDLL(None, use_errno=True)
queue, data = libc.msgget(0, 0o600), ctypes.create_string_buffer(256)
assert libc.msgsnd(queue, struct.pack("l4s", 1, b"text"), 4, 0) == 0 and libc.msgctl(queue, 2, data) == 0
struct.pack_into("I", data, 20, 0o200)
assert libc.msgctl(queue, 1, data) == 0
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
struct.pack_into("I", data, 20, 0o600)
assert libc.msgctl(queue, 1, data) == 0 and libc.msgrcv(queue, data, 4, 0, 0o4000) == 4
libc.msgctl(queue, 0, None)
print("ok", flush=True)'
	not_ok "a queue that its own user may not read is refused" checkpoint
	like "$(told)" "System V message queue [0-9]+ .key 0.: cannot copy message 0 .its mode keeps its own user out: change that, or run trecr as root.: Permission denied" \
		"for that" || explain
	finish
	is "$status $(tail -n 1 out)" "0 ok" "and the program has not noticed" || explain
	sweep >/dev/null
fi

# A restart that fails leaves none behind.
arena failed
launch "$victim/sysv" && freeze_away
ids=$(grep -ao 'System V shared memory [0-9]*' ck/ckpt-000001/job | awk '{ print $5 }')
segments() {
	local id
	for id in $ids; do
		ipcs -m -i "$id" 2>/dev/null | grep -o 'shmid=[0-9]*'
	done
}
isnt "$(segments)" "" "its segments are there still"
segments >before
last=$(ls ck/ckpt-000001 | grep -v job | sort -n | tail -n 1)
cp "ck/ckpt-000001/$last" kept
printf 'broken' | dd of="ck/ckpt-000001/$last" bs=1 seek=4200 conv=notrunc 2>/dev/null
timeout -k 1 60 trecr-restart ck </dev/null >>out 2>restart.err
is $? 125 "a damaged image is not brought back"
is "$(segments)" "$(cat before)" "and no System V object is left of it"
for id in $ids; do
	ipcrm -m "$id" 2>/dev/null
done
timeout -k 1 60 trecr-restart ck </dev/null >>out 2>restart.err
is $? 125 "nor where they are gone"
is "$(segments)" "" "and none is left that was not there before"
cp kept "ck/ckpt-000001/$last"
restart_here && finish && [ "$status" = 0 ] && said_ok
result $? "repaired, it comes back" || explain
sweep >/dev/null

remove_awaited
done_testing
