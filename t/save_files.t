#!/bin/bash
# --save-files: contents of files that a program writes to come back with it, whatever has become
# of them since; what is there is moved aside, and named.
. "$(dirname "$0")/lib.sh"

have python3 && python3 -c 'import sqlite3' 2>/dev/null || skip_all "no python3 with sqlite3"
# With terminals of its own, of which none has been opened.
apart -m
[ -z "${TRECR_APART:-}" ] || mount -t devpts -o ptmxmode=0666 none /dev/pts

cat >transaction.py <<'END'
import os, signal, sqlite3
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
db = sqlite3.connect('db', isolation_level=None)
db.execute('pragma cache_size=1')
db.execute('create table t (i integer primary key, v blob)')
db.execute('insert into t (v) values (zeroblob(2000000))')
db.execute('begin')
db.execute('update t set v = randomblob(2000000)')
db.executemany('insert into t (v) values (?)', ((bytes(1000),) for i in range(2000)))
log = open('log', 'w')
log.write('begun\n' + 'x' * 100)
log.flush()
print('ready', os.path.exists('db-journal'), flush=True)
signal.sigwait({signal.SIGUSR1})
db.execute('commit')
db.execute('update t set v = zeroblob(10) where i = 7') # it writes to no other file in its place
log.truncate(0)
log.seek(0)
log.write('committed\n')
log.flush()
print(db.execute('select count(*), max(i) from t').fetchone(),
      db.execute('pragma integrity_check').fetchone(), flush=True)
END

# A checkpoint in the middle of a transaction, which is then committed, and a crash.
crash() {
	rm -f out
	# shellcheck disable=SC2086
	trecr-run -d ck ${RUN_FLAGS:-} -- python3 ../transaction.py </dev/null >out 2>err &
	sup=$!
	await -t 60 -p $sup out '^ready True$' >/dev/null 2>await.err && checkpoint || return 1
	local program
	program=$(program_of $sup)
	finish
	[ ! -e db-journal ] && grep -q "integrity\|ok" out && ! kill -0 "$program" 2>/dev/null
}

arena unsaved
ok "a transaction is committed after a checkpoint" crash
like "$(cat ckpt.err)" "db-journal is likely to be .*--save-files" \
	"without --save-files the checkpoint says what it hangs on"
not_ok "and it cannot be restarted" quiet restart_here
sweep >/dev/null

RUN_FLAGS=--save-files
arena saved
ok "a transaction is committed after a checkpoint with --save-files" crash
is "$(told)" "" "of which there is nothing to be said"
cp db after
for f in "$path"/*; do
	[ "${f##*/}" = job ] || { bad=$f && cp "$f" whole && edit-image "$f" flip 4100; }
done
not_ok "with a damaged image it does not" quiet restart_here
ok "and its files are as they were" cmp after db
cp whole "$bad"
ok "the program goes on in the middle of the transaction" restart_here
finish
is "$status" 0 "and ends well"
like "$(tail -n 1 out)" "^\(2001, 2001\) \('ok',\)$" "its database is in order"
is "$(cat log)" "committed" "and its log"
ok "what had been there has been moved aside" cmp -s db.trecr-aside after
like "$(cat restart.err)" "/db is as it was .*/db.trecr-aside" "and is named"
like "$(cat restart.err)" "/db-journal was missing and has been put back" "what was missing, too"
sweep >/dev/null

# A restarted program goes on to be saved so.
arena kept
launch "$victim/idle" 8>file && checkpoint && kill -9 "$(program_of $sup)" && await -t 60 -p $sup 2>>await.err
RUN_FLAGS=
restart_detached && freeze_away && rm file
ok "contents of files are in the checkpoints of a restarted program, too" restart_detached || explain
ok "which puts them back" [ -e file ]
finish
RUN_FLAGS=--save-files
sweep >/dev/null

# Nor do mappings of it hang on what it holds by now.
for way in ACCESS_COPY ACCESS_WRITE; do
	arena $way
	cat >mapped.py <<-END
		import mmap, signal
		signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
		f = open('file', 'w+b')
		f.write(b'x' * 8192)
		f.flush()
		m = mmap.mmap(f.fileno(), 8192, access=mmap.$way)
		m[0] = 0x79
		print('ready', flush=True)
		signal.sigwait({signal.SIGUSR1})
		print('ok' if m[:] == b'y' + b'x' * 8191 else 'changed', flush=True)
	END
	launch python3 mapped.py && checkpoint && kill -9 "$(program_of $sup)" && await -t 60 -p $sup 2>>await.err
	echo shorter >file
	ok "a program with a mapping of a saved file ($way) is restarted" restart_here
	finish
	said_ok
	result $? "and finds it as it was" || explain
	sweep >/dev/null
done

# Java maps a file in /tmp, closes it, and uses it as memory that others can look at. A reboot removes
# it with its directory.
cat >"$scratch/closed.py" <<'END'
import ctypes, os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
os.mkdir('data')
fd = os.open('data/file', os.O_RDWR | os.O_CREAT, 0o600)
os.truncate(fd, 8192)
memory = (ctypes.c_char * 8192).from_address(libc.mmap(None, 8192, 3, 1, fd, 0))
os.close(fd)
memory[5000] = b'x'
print('ready', flush=True)
signal.sigwait({signal.SIGUSR1})
was = memory[5000]
memory[5001] = b'y'
print('ok' if was == b'x' and open('data/file', 'rb').read()[5000:5002] == b'xy' else 'differs', flush=True)
END
for RUN_FLAGS in "" --save-files; do
	arena closed
	name="a file that is mapped and closed (${RUN_FLAGS:-without options})"
	if [ -z "$RUN_FLAGS" ] && [[ ! $PWD =~ ^(/var/tmp|/tmp|/run)/ ]]; then
		skip "$name" "TMPDIR is no directory for temporary files"
		continue
	fi
	launch python3 "$scratch/closed.py" && freeze_away && rm -r data && restart_here && finish
	said_ok
	result $? "$name, and is gone with its directory, is put back" || explain
	sweep >/dev/null
done
# One that the program reads from, and removes when it has gone on.
cat >"$scratch/read.py" <<'END'
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
os.mkdir('data')
open('data/file', 'w').write('begin and end')
f = os.open('data/file', os.O_RDONLY)
begin = os.read(f, 6)
print('ready', flush=True)
signal.sigwait({signal.SIGUSR1})
print('ok' if begin + os.read(f, 100) == b'begin and end' else 'differs', flush=True)
os.remove('data/file')
END
for RUN_FLAGS in "" --save-files; do
	arena read
	name="a file that is read from (${RUN_FLAGS:-without options})"
	if [[ ! $PWD =~ ^(/var/tmp|/tmp|/run)/ ]]; then
		skip "$name" "TMPDIR is no directory for temporary files"
		continue
	fi
	launch python3 "$scratch/read.py" && checkpoint && finish && rmdir data && printf 'ready\n' >out && restart_here &&
		finish && said_ok
	result $? "$name, and is removed behind the checkpoint, is put back" || explain
	sweep >/dev/null
done
# What is there by then is not touched, and one that is written to, too, is saved as such.
arena both
if [[ $PWD =~ ^(/var/tmp|/tmp|/run)/ ]]; then
	RUN_FLAGS=
	echo "of then" >"input"
	launch "$victim/idle" 8<"input" && freeze_away && echo "of now, which is longer" >"input" && restart_detached
	is "$(cat input)" "of now, which is longer" "one that has been changed is left alone" || explain
	finish
	sweep >/dev/null
	RUN_FLAGS=--save-files
	launch "$victim/idle" 8<"input" 9>>"input" && freeze_away && echo of later >"input" && restart_detached
	is "$(cat input)" "of now, which is longer" "but for one that is written to, too" || explain
	finish
	sweep >/dev/null
fi
RUN_FLAGS=
arena linked
if [[ $PWD =~ ^(/var/tmp|/tmp|/run)/ ]]; then
	launch python3 "$scratch/closed.py" && freeze_away && rm -r data && mkdir elsewhere && ln -s elsewhere data
	not_ok "it is not put back by way of a link that has taken the directory's place" quiet restart_here
	like "$(cat restart.err)" "/data is not a directory of this user's" "which is said" || explain
	is "$(ls elsewhere)" "" "and makes nothing there"
	sweep >/dev/null
fi
RUN_FLAGS=--save-files

# A journal that was none at the checkpoint would be rolled back.
arena absent
cat >idle.py <<'END'
import os, signal, sqlite3
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
db = sqlite3.connect('db', isolation_level=None)
db.execute('create table t (i)')
print('ready', flush=True)
signal.sigwait({signal.SIGUSR1})
print(db.execute('select count(*) from t').fetchone(), flush=True)
END
ok "a program with a database that it does not use" launch python3 idle.py
checkpoint
kill -9 "$(program_of $sup)"
await -t 60 -p $sup 2>>await.err
echo not a journal >db-journal
ok "is restarted" restart_here
finish
like "$(tail -n 1 out)" "^\(0,\)$" "and finds its database as it was"
is "$(cat db-journal.trecr-aside)" "not a journal" "what came later is moved aside"
sweep >/dev/null

# What is not known by its inode is not taken for terminal 0.
cat >terminal.py <<'END'
import ctypes, os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
log = open('log', 'w')
log.write('begun')
log.flush()
events = ctypes.CDLL(None).inotify_init()
ctypes.CDLL(None).inotify_add_watch(events, b'.', 0x100) # IN_CREATE
open('created', 'w').close()
master, slave = os.openpty()
if os.ttyname(slave) != '/dev/pts/0':
    print('skip terminal 0 is in use')
    raise SystemExit
os.write(slave, b'through')
print('ready', flush=True)
signal.sigwait({signal.SIGUSR1})
if os.read(master, 100) == b'through' and b'created' in os.read(events, 1000):
    print('ok', flush=True)
END
scenario "a saved file, unread events of inotify, and terminal 0" twice python3 "$PWD/terminal.py"

# The image shares blocks with the files where their file system can, and holds what it shares.
cat >"$scratch/share.py" <<'END'
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
size = 12 << 20
text = os.urandom(size + 17)
other = os.urandom(size)
with open('named', 'wb') as named, open('gone', 'w+b') as gone, open('busy', 'wb') as busy:
    named.write(text)
    named.flush()
    gone.write(other)
    gone.flush()
    busy.write(other)
    busy.flush()
    os.remove('gone')
    print('ready', flush=True)
    signal.sigwait({signal.SIGUSR1})
    same = os.pread(gone.fileno(), size + 1, 0) == other and open('named', 'rb').read() == text
print('ok' if same else 'differs', flush=True)
END
cat >"$scratch/scribble.py" <<'END'
import os, sys
fd = os.open('busy', os.O_WRONLY)
while True:
    for at in range(0, 12 << 20, 65536):
        os.pwrite(fd, os.urandom(4096), at)
    open('scribbling', 'w').close()
END

# MiB of the image that it shares with other files.
shared_mib() {
	sync -f "$path/job" && filefrag -b4096 -v "$path"/job* |
		awk '$NF ~ /shared/ { blocks += $6 } END { print int(blocks / 256) }'
}

on_new_disk() { # FILE-SYSTEM
	mkdir disk && truncate -s 400M disk.img && mkfs."$1" -q disk.img &&
		mount -o loop disk.img disk
}

restored_from_shared() {
	local writer
	launch python3 "$scratch/share.py" || return
	python3 "$scratch/scribble.py" &
	writer=$!
	await -t 60 -p $writer -e scribbling 2>>await.err && checkpoint &&
		kill $writer && trecr-inspect --verify "$path" >>verify 2>&1
}

RUN_FLAGS=--save-files
for fs in btrfs xfs; do
	arena shared
	if [ -z "${TRECR_APART:-}" ] || ! have mkfs.$fs || ! have filefrag || ! on_new_disk $fs >>err 2>&1; then
		skip "files on $fs" "no $fs can be made and mounted here"
		continue
	fi
	cd disk || exit 1
	ok "files on $fs, one of which another process writes to, are saved" restored_from_shared ||
		explain verify
	ok "and share their blocks with the image" [ "$(shared_mib)" -ge 35 ]
	kill -9 "$(program_of $sup)"
	await -t 60 -p $sup 2>>await.err
	: >named
	ok "the program is restarted with what its files were" restart_here || explain
	finish
	is "$(tail -n 1 out)" ok "and finds it"
	sweep >/dev/null
	cd .. && umount -l disk
done
RUN_FLAGS=

# Too large a file is named.
RUN_FLAGS=--save-files=1K
arena large
ok "a file is larger than asked for" launch bash -c 'exec 8>large; head -c 2000 /dev/zero >&8
	echo ready; while [ ! -e go ]; do sleep 0.05; done'
checkpoint
like "$(cat ckpt.err)" "/large is not saved: it has 2000 bytes" "and is named"
: >go
await -t 60 -p $sup 2>>await.err
sweep >/dev/null
RUN_FLAGS=
for size in 0 x 5X 1KK -1 99999999999999999999 18014398509481984G; do
	not_ok "--save-files=$size is no size" quiet trecr-run -d ck --save-files=$size -- true
done
done_testing
