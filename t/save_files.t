#!/bin/bash
# --save-files: contents of files that a program writes to come back with it, whatever has become
# of them since; what is there is moved aside, and named.
. "$(dirname "$0")/lib.sh"
on_disk "$@"

have python3 && python3 -c 'import sqlite3' 2>/dev/null || skip_all "no python3 with sqlite3"
# With terminals of its own, of which none has been opened.
apart -mi # other tests' System V objects would be told of, too
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
	"without --save-files the checkpoint says what it depends on"
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
ok "the program resumes in the middle of the transaction" restart_here
finish
is "$status" 0 "and ends well"
like "$(tail -n 1 out)" "^\(2001, 2001\) \('ok',\)$" "its database is in order"
is "$(cat log)" "committed" "and its log"
ok "what had been there has been moved aside" cmp -s db.trecr-aside after
like "$(cat restart.err)" "/db was put back as it was at the checkpoint; its contents until now are in .*/db.trecr-aside" "and is named"
like "$(cat restart.err)" "/db-journal was missing and has been put back" "what was missing, too"
sweep >/dev/null

# A restarted program is saved in the same way.
arena kept
launch "$victim/idle" 8>file && checkpoint && kill -9 "$(program_of $sup)" && await -t 60 -p $sup 2>>await.err
RUN_FLAGS=
restart_detached && freeze_away && rm file
ok "contents of files are in the checkpoints of a restarted program, too" restart_detached || explain
ok "which puts them back" [ -e file ]
finish
RUN_FLAGS=--save-files
sweep >/dev/null

# Nor do mappings of it depend on what it holds by now.
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
# A file that the program reads from, and removes when it runs on.
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
# A file that is there by then is not touched, and one that is also written to is saved as such.
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
	is "$(cat input)" "of now, which is longer" "except one that is also written to" || explain
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

# Directories whose files belong together: of most of them the program has none open.
cat >"$scratch/set.py" <<'END'
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
names = {'leveldb': ('MANIFEST-000001', 'CURRENT', 'deep/000005.ldb'),
         'redis': ('a.aof.1.incr.aof', 'a.aof.manifest', 'a.aof.1.base.rdb'),
         'postgresql': ('base/5/16384', 'global/pg_control', 'base/5/16385', 'PG_VERSION'),
         'mariadb': ('ibdata1', 'mysql/user.frm', 'd/t1.ibd'),
         'influxdb': ('wal/d/autogen/1/_00001.wal', 'meta/meta.db', 'data/d/autogen/1/1.tsm'),
         'none': ('MANIFEST-000001',)}[sys.argv[1]]
os.makedirs('set', exist_ok=True)
os.chdir('set')
for name in names:
    os.makedirs(os.path.dirname(name) or '.', exist_ok=True)
    open(name, 'w').write('then ' + name)
os.makedirs('void', 0o700, exist_ok=True)
open('large', 'w').truncate(3000000)
written = open(names[0], 'a')
if len(sys.argv) > 2:
    os.chdir('..')
print('ready', flush=True)
signal.sigwait({signal.SIGUSR1})
right = os.path.isdir('void') and os.stat('void').st_mode & 0o777 == 0o700
right = right and all(open(name).read() == 'then ' + name for name in names)
written.write(' and on')
written.close()
print('ok' if right and open(names[0]).read().endswith(' and on') else 'differs', flush=True)
END
for how in leveldb redis postgresql mariadb influxdb; do
	arena "set-$how"
	RUN_FLAGS=
	launch python3 "$scratch/set.py" $how && checkpoint
	like "$(cat ckpt.err)" "files in .*/set are likely to be .*--save-files saves them" \
		"$how: without --save-files the checkpoint says what it depends on" || explain
	kill -9 "$(program_of $sup)"
	await -t 60 -p $sup 2>>await.err
	rm -r set ck
	: >ckpt.err
	# Its checkpoints are in the same directory.
	RUN_FLAGS=--save-files=1M
	mkdir -p set/ck
	ln -s set/ck ck
	launch python3 "$scratch/set.py" $how && checkpoint
	like "$(told)" "/set/large is not saved: it has 3000000 bytes" "a file that is too large is named" || explain
	is "$(told | wc -l)" 1 "and nothing else" || explain
	kill -9 "$(program_of $sup)"
	await -t 60 -p $sup 2>>await.err
	rm -r set/[!cl]*
	mkdir -p set/later
	touch -d '2001-01-01' set/large
	echo now >set/000007.ldb
	echo now >set/later/MANIFEST-000002
	ok "$how: all files of the directory are put back" restart_here || explain
	finish
	is "$(tail -n 1 out)" ok "and the program finds them as they were" || explain
	is "$(find set -name '*aside*' | sort | xargs)" \
		"set/000007.ldb.trecr-aside set/later.trecr-aside" "what came later is moved aside"
	is "$(cat set/later.trecr-aside/MANIFEST-000002)" now "a directory as a whole"
	like "$(cat restart.err)" "/set/000007.ldb was not there at the checkpoint; it is now .*/set/000007.ldb.trecr-aside" \
		"and is named"
	like "$(cat restart.err)" "/set/large was not saved and has been changed since the checkpoint" \
		"what was not saved and is not as it was is named, too" || explain
	ok "but no checkpoints, and not what was too large" [ -e ck/latest/job -a -e set/large ]
	sweep >/dev/null
done
# Of other directories nothing is moved.
arena set-none
RUN_FLAGS=--save-files=1M
launch python3 "$scratch/set.py" none && freeze_away && : >set/later && restart_here && finish
is "$(tail -n 1 out)" ok "a file that only has a name like one of LevelDB's is put back" || explain
ok "and its directory is left alone" [ -e set/later ]
sweep >/dev/null
# Its checkpoints are in that very directory.
arena set-store
RUN_FLAGS=--save-files=1M
mkdir set && ln -s set ck
launch python3 "$scratch/set.py" redis && checkpoint
kill -9 "$(program_of $sup)"
await -t 60 -p $sup 2>>await.err
rm set/a.aof* && : >set/later && restart_here && finish
is "$(tail -n 1 out) $(echo set/*aside)" "ok set/later.trecr-aside" \
	"files beside which the checkpoints are come back, and what came later is moved aside" || explain
sweep >/dev/null
# What could not be looked at is not known to have come later.
arena set-skipped
RUN_FLAGS=--save-files=1M
mkdir -p set elsewhere && : >elsewhere/before && ln -s ../elsewhere set/sub
launch python3 "$scratch/set.py" redis && checkpoint
like "$(told)" "of the files in .*/set/sub only open ones are saved: a symbolic link leads there" \
	"a directory that is not looked into is named" || explain
kill -9 "$(program_of $sup)"
await -t 60 -p $sup 2>>await.err
rm set/sub && mv elsewhere set/sub && restart_here && finish
is "$(tail -n 1 out) $(ls set/sub.trecr-aside) $(readlink set/sub)" "ok before ../elsewhere" \
	"and what is in its place at a restart is moved aside as a whole" || explain
sweep >/dev/null
if ! am_root; then
	arena set-closed
	RUN_FLAGS=--save-files=1M
	launch python3 "$scratch/set.py" redis && chmod 300 set && freeze_away && chmod 700 set && : >set/later &&
		chmod 300 set && restart_here && finish
	is "$(tail -n 1 out)" ok "nor is one that cannot be listed a reason not to restart" || explain
	chmod 700 set
	ok "and what is in it stays" [ -e set/later ]
	sweep >/dev/null
fi
arena set-open
mkdir -m 1777 set
RUN_FLAGS=--save-files=1M
launch python3 "$scratch/set.py" postgresql && freeze_away && : >set/later && restart_here && finish
is "$(tail -n 1 out)" ok "a file in a directory that anybody may write to is put back" || explain
ok "and no other there is touched, whatever names are made there" [ -e set/later ]
sweep >/dev/null
# Whom the directory belongs to could lead a restart of root's elsewhere.
if am_root; then
	arena set-link
	RUN_FLAGS=--save-files=1M
	launch python3 "$scratch/set.py" redis && freeze_away && rm -r set && mkdir elsewhere &&
		: >elsewhere/other && ln -s elsewhere set && chown -h 65534 set
	not_ok "no file is moved aside where another user's symbolic link leads" quiet restart_here
	like "$(cat restart.err)" "/set is a symbolic link, and one of user 65534" "which is said" || explain
	is "$(ls elsewhere)" other "and they stay"
	sweep >/dev/null
	# A link that is put there when the restart has begun: nothing else of the program is in the directory.
	arena set-swapped
	RUN_FLAGS=--save-files=1M
	launch python3 "$scratch/set.py" redis away && freeze_away && chown 65534 set && : >set/later && mkdir elsewhere &&
		: >elsewhere/other
	LD_PRELOAD=$build/t/swap.so TRECR_SWAP_DIRECTORY=$PWD/set TRECR_SWAP_FOR=$PWD/elsewhere \
		trecr-restart -D ck </dev/null >restart.out 2>>restart.err
	is $? 125 "nor where such a link is put while files are moved" || explain
	like "$(cat restart.err)" "/set is a symbolic link, and one of user 65534" "which is said, too" || explain
	is "$(ls elsewhere) $(cd set.was && ls later*)" "other later.trecr-aside" \
		"what came later is moved aside in the directory that was there"
	sweep >/dev/null
fi
RUN_FLAGS=

# Directories that the user names, of which nothing is open.
cat >"$scratch/named.py" <<'END'
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
os.makedirs('one/sub')
os.mkdir('two')
names = 'one/a', 'one/sub/b', 'two/c'
for name in names:
    with open(name, 'w') as f:
        f.write('then ' + name)
print('ready', flush=True)
signal.sigwait({signal.SIGUSR1})
print('ok' if all(open(name).read() == 'then ' + name for name in names) else 'differs', flush=True)
END
arena named
mkdir links && ln -s "$PWD/two" links/two && : >file
RUN_FLAGS=--save-dirs=one:links/two:absent:file
launch python3 "$scratch/named.py" && checkpoint
is "$(told | grep -v 'it is not a directory' | cut -d: -f2-)" " files in $PWD/absent are not saved: No such file or directory" \
	"of --save-dirs what is not there is named" || explain
like "$(told)" "files in $PWD/file are not saved: it is not a directory" "and what is no directory, too"
for life in first second; do
	kill -9 "$(program_of $sup)"
	await -t 60 -p $sup 2>>await.err
	echo now >one/a && rm -rf two && : >one/sub/$life.later
	ok "$life: a program with directories of --save-dirs comes back" restart_detached || explain
	is "$(cat one/a one/sub/b two/c) $(ls one/sub)" "then one/athen one/sub/bthen two/c b
$(echo first.later.trecr-aside; [ $life = first ] || echo second.later.trecr-aside)" \
		"$life: with all their files, and later ones moved aside" || explain
	# The restarted program is saved with the same directories.
	checkpoint
done
finish
is "$(tail -n 1 out)" ok "and the program finds them as they were" || explain
sweep >/dev/null
not_ok "a name must not be empty" quiet trecr-run --save-dirs=one: true

# A directory below one whose name has a colon, beside one of the name up to there.
cat >"$scratch/asked.py" <<'END'
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
os.makedirs('one/sub/below')
os.mkdir('one/empty')
os.symlink('a', 'one/link')
os.symlink('nowhere', 'one/dangling')
os.symlink('sub', 'one/inside')
for name in 'one/a', 'one/sub/b', 'one/last':
    with open(name, 'w') as f:
        f.write('then ' + name)
log = open('log', 'w')
log.write('begun')
log.flush()
print('ready', flush=True)
signal.sigwait({signal.SIGUSR1})
print('ok', flush=True)
END
ended() {
	kill -9 "$(program_of $sup)"
	await -t 60 -p $sup 2>>await.err
}
arena colon
mkdir run run:30 && : >run/foreign && cd run:30 || exit 1
RUN_FLAGS=--save-dirs=one
launch python3 "$scratch/asked.py" && checkpoint && ended
for life in first second; do
	echo now >one/a && : >one/$life.later
	ok "$life: a program with --save-dirs comes back in a directory with a colon in its name" restart_detached ||
		explain
	is "$(cat one/a) $(ls ../run) $(cd one && echo $life.later*)" "then one/a foreign $life.later.trecr-aside" \
		"$life: with its files, and those of another directory are left alone" || explain
	checkpoint && ended
done
sweep >/dev/null

# What cannot be saved at one checkpoint is at the next one, also after a restart.
arena left-out
RUN_FLAGS=--save-dirs=two
mkdir two && chmod o+w two
launch python3 "$scratch/asked.py" && checkpoint
like "$(told)" "files in $PWD/two are not saved: everybody may write to it" \
	"a directory that everybody may write to is left out" || explain
ended && restart_detached && chmod o-w two && echo old >two/c && checkpoint && ended
echo now | tee two/c log >/dev/null
ok "a directory that was left out at the first checkpoint is saved after a restart" restart_detached || explain
is "$(cat two/c log)" "old
begun" "and so are files that are open" || explain
finish
sweep >/dev/null
if am_root; then
	arena others
	RUN_FLAGS=--save-dirs=two
	mkdir two && chown 65534 two
	launch python3 "$scratch/asked.py" && checkpoint
	like "$(told)" "files in $PWD/two are not saved: it belongs to user 65534, while trecr runs as user 0" \
		"whose a directory is that is left out is said" || explain
	sweep >/dev/null
fi

arena kinds
RUN_FLAGS=--save-dirs=one
mkdir other one && mkfifo one/fifo && ln -s ../other one/outside
launch python3 "$scratch/asked.py" && checkpoint
is "$(told | cut -d: -f2- | sort)" " $PWD/one/fifo is not saved: it is a FIFO
 of the files in $PWD/one/outside only open ones are saved: a symbolic link leads there" \
	"what is not saved in a directory of --save-dirs is named, and nothing else" || explain
ended
rm one/link one/inside one/last && ln -s b one/link && echo now >one/inside && mkdir -p one/last/in &&
	: >one/last/in/file && ln -s a one/later
# A file and a link where there were directories.
rm -r one/sub one/empty && echo now >one/sub && ln -s ../other one/empty
ok "a program comes back where files, links and directories have changed places" restart_detached || explain
is "$(cd one && for link in link dangling inside outside *-aside; do readlink $link; done | xargs)" \
	"a nowhere sub ../other ../other a b" "symbolic links are as they were, and later ones moved aside" || explain
is "$(cat one/sub/b one/last one/sub.trecr-aside) $(find one/sub one/empty -type d | sort | xargs)" \
	"then one/sub/bthen one/lastnow one/empty one/sub one/sub/below" "so are files and directories" || explain
ok "a directory in the place of a file is moved aside as a whole" [ -f one/last.trecr-aside/in/file ] || explain
like "$(cat restart.err)" "/one/sub was a directory at the checkpoint; what had its name is now .*/one/sub.trecr-aside" \
	"what was in a directory's place is named" || explain
ended
mv one one.was && : >one
not_ok "no program comes back where such a directory is a file" quiet restart_here
like "$(cat restart.err)" "files in $PWD/one back: it, or a directory above it, is no longer a directory" \
	"which is said" || explain
sweep >/dev/null

# More than an answer of the supervisor has room for.
arena notices
RUN_FLAGS=--save-dirs=one
mkdir -p one other && perl -e 'for (1 .. 4000) { my $f = "o" x 200 . $_; open(F, ">", "other/$f"); symlink("../other/$f", "one/$_") }'
launch python3 "$scratch/asked.py"
ok "a checkpoint of which there is a lot to tell is told of" checkpoint || explain
like "$(tail -n 1 ckpt.err)" "[0-9]+ more messages are left out" "with the first lines of that" || explain
: >ckpt.err
ok "and so is the next one" checkpoint
like "$(head -n 1 ckpt.err)" "is saved as a symbolic link, without the file" "with its own lines"
finish
sweep >/dev/null

# What a restart writes to itself, and what it reads.
arena own
RUN_FLAGS=--save-dirs=one
launch python3 "$scratch/asked.py" && checkpoint && ended
mkdir -p one/in/in one/sub/made one/apart/in && : >one/apart/in/file && cp -r ck/latest/ one/in/copy
echo 1 >one/pid && : >one/later && : >one/in/later
trecr-restart -D --pidfile one/pid -d one/new one/in/copy </dev/null >one/out 2>one/in/in/err
is "$? $(cat one/pid) $(find one -name '*aside*' | sort | xargs)" \
	"0 $(cat one/out) one/apart.trecr-aside one/in/later.trecr-aside one/later.trecr-aside one/sub/made.trecr-aside" \
	"a restart leaves its own files in such a directory, and moves others aside" || explain one/in/in/err
ok "and directories with all that is in them" [ -f one/apart.trecr-aside/in/file ]
ok "but for those in which its own files or checkpoints are" [ -f one/in/copy/job -a -s one/in/in/err ]
mv one/in/in/err one/err
like "$(cat one/err)" "/one/later was not there at the checkpoint" "and what it says is in its file" || explain one/err
sup=$(cat one/out)
finish
sweep >/dev/null

# A process id that is written by way of a symbolic link that came later.
arena own-link
RUN_FLAGS=--save-dirs=one
launch python3 "$scratch/asked.py" && checkpoint && ended
mkdir aside && ln -s ../aside one/way && ln -s ../aside one/other
trecr-restart -D --pidfile one/way/pid ck </dev/null >>out 2>restart.err
is "$? $(readlink one/way) $(cat aside/pid)" "0 ../aside $(tail -n 1 out)" \
	"a link by which the file of --pidfile is reached stays" || explain
ok "and others do not" [ ! -e one/other -a -h one/other.trecr-aside ]
sup=$(cat aside/pid)
finish
sweep >/dev/null

# A directory that has the name of a saved file.
arena in-the-way
RUN_FLAGS=--save-files
launch perl -e '$| = 1; open(F, "+>", "data") && syswrite(F, "saved") or die; print "ready\n"; sleep'
checkpoint && ended
rm data && mkdir data data/in
timeout 60 trecr-restart -d data/in/new ck </dev/null >>out 2>restart.err
is "$? $(ls -d data*)" "125 data" "a directory in the place of a file is not moved with the checkpoints to come"
like "$(cat restart.err)" "/data is a directory now.*move it away" "which is said" || explain
(cd data && timeout 60 trecr-restart ../ck </dev/null >../out 2>../restart.err)
is "$? $(ls -d data*)" "125 data" "nor with the directory in which the restart is started"
restart_detached || explain
is "$(cat data) $(ls data.trecr-aside)" "saved in" "else it is moved aside as a whole" || explain
finish
sweep >/dev/null

# Where checkpoints are going to be, by whichever way, and where the restart is started.
for how in below link instead here elsewhere; do
	arena "to-$how"
	at=$PWD
	RUN_FLAGS=--save-dirs=one
	launch python3 "$scratch/asked.py" && checkpoint && ended
	mkdir -p one/apart one/new/jobs/in jobs && : >one/new/jobs/in/other
	case $how in
	below) from=. to=one/new/jobs ;;
	link)
		mv one/new elsewhere && ln -s way one/new && ln -s ../elsewhere one/way
		from=. to=$at/one/new/jobs
		;;
	instead)
		mv one/sub moved && ln -s ../moved one/sub
		from=. to=$at/one/sub/jobs
		;;
	here) from=one/new to=jobs ;;
	elsewhere)
		rm -r one/new/jobs
		from=one/new to=$at/jobs
		;;
	esac
	sup=$(cd $from && trecr-restart -D -d "$to" "$at/ck" </dev/null 2>>"$at/restart.err")
	checkpoint
	is "$? $(cd $from && cd "$to" && echo ckpt-*/job)" "0 ckpt-000001/job" \
		"$how: checkpoints go where a restart was told to" || explain
	is "$(find . -name '*aside' -o -name other | sort | xargs)" "$(case $how in
		link) echo ./elsewhere/jobs/in/other ./one/apart.trecr-aside ;;
		instead) echo ./one/apart.trecr-aside ./one/new.trecr-aside ./one/new.trecr-aside/jobs/in/other ;;
		elsewhere) echo ./one/apart.trecr-aside ;;
		*) echo ./one/apart.trecr-aside ./one/new/jobs/in/other ;;
	esac)" "$how: neither that directory nor its way is moved aside, nor what is in it" || explain
	finish
	sweep >/dev/null
done

# The ranks of a job find each other by files there.
cat >"$scratch/rank.py" <<'END'
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
print('ready', flush=True)
signal.sigwait({signal.SIGUSR1})
END
ranks() { # FILE TEXT COMMAND...: until that is in the files of all
	local rank file=$1 text=$2
	shift 2
	for rank in 0 1; do
		PMI_RANK=$rank PMI_SIZE=2 "${@//RANK/$rank}" </dev/null >>out.$rank 2>>err.$rank &
		pids[rank]=$!
	done
	for rank in 0 1; do
		await -t 120 -p "${pids[rank]}" "$file.$rank" "$text" >/dev/null 2>>await.err || return
	done
}
for way in "set/ck set/new" "ck set" "set set"; do
	arena ranks
	from=${way% *} to=${way#* } pids=()
	mkdir set
	ranks out '^ready$' trecr-run --save-dirs=set -d "$from" -- python3 "$scratch/rank.py" &&
		trecr-ckpt -t 60 "$from" >>ckpt.out 2>>ckpt.err && trecr-ckpt -t 60 "$from" >>ckpt.out 2>>ckpt.err
	ok "a job with checkpoints in $from is saved" test $? = 0 || explain err.0 err.1
	sweep >/dev/null
	mkdir -p set/apart
	ranks pidfile '^[0-9]+$' trecr-restart -d "$to" --pidfile pidfile.RANK "$from"
	ok "and restarted with checkpoints in $to" test $? = 0 || explain err.0 err.1
	ok "and saved there" quiet trecr-ckpt -t 60 "$to" || explain err.0 err.1
	is "$(find set -name '*aside*')" set/apart.trecr-aside "only other directories are moved aside" || explain err.0 err.1
	sweep >/dev/null
done

# Directories that may be in use.
arena used
RUN_FLAGS=--save-dirs=one
launch python3 "$scratch/asked.py" && checkpoint && ended
mkdir -p one/apart one/daemon/in one/server/in one/old/in.trecr-aside && : >one/daemon/pid &&
	mkfifo one/daemon/in/fifo one/old/in.trecr-aside/fifo &&
	(cd one/server/in && python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")')
ok "a program comes back where other programs have been started since" restart_detached || explain
is "$(find one -name '*aside*' -o -type p -o -type s | sort | xargs)" \
	"one/apart.trecr-aside one/daemon/in/fifo one/daemon/pid.trecr-aside one/old/in.trecr-aside \
one/old/in.trecr-aside/fifo one/server/in/socket" \
	"directories with FIFOs and sockets stay" || explain
finish
sweep >/dev/null

# What is mounted there.
arena mounted
if [ -z "${TRECR_APART:-}" ] || ! mkdir -p one/sub || ! mount -t tmpfs none one/sub; then
	skip "directories of file systems that are mounted" "nothing can be mounted here"
else
	RUN_FLAGS=--save-dirs=one
	launch python3 "$scratch/asked.py" && checkpoint && ended
	mkdir -p one/mnt one/way/to/mnt one/bind one/way/to/bind elsewhere/directory && : >one/file &&
		: >elsewhere/file && : >one/sub/later
	for on in mnt way/to/mnt empty; do
		mount -t tmpfs none one/$on && mkdir one/$on/directory && : >one/$on/file
	done
	for on in bind way/to/bind; do
		mount --bind elsewhere one/$on
	done
	mount --bind elsewhere/file one/file
	ok "a program comes back where file systems have been mounted since" restart_detached || explain
	is "$(find one -name '*aside*')" one/sub/later.trecr-aside \
		"nothing is moved aside in them, nor their directories; it is in one that was there" || explain
	finish
	sweep >/dev/null
	for on in mnt way/to/mnt empty bind way/to/bind file sub; do
		umount -l one/$on
	done
fi

# Directories of which the kernel knows no name, as it would be too long.
arena deep
mkdir one
RUN_FLAGS=--save-dirs=one
perl -e 'chdir "one"; for (1 .. 25) { mkdir "d" x 200 and chdir "d" x 200 or die $! } open F, ">", "deepest"'
launch python3 "$scratch/asked.py" && checkpoint
is "$(told | grep -c 'of the files in .*/one/d.*d only open ones are saved: File name too long')" 1 \
	"a directory whose name is too long is not saved, which is said" || explain
ended
: >one/later
ok "the program comes back" restart_detached || explain
is "$(find one -name '*aside*' | cut -c1-100) $(find one -name deepest | wc -l)" "one/later.trecr-aside 1" \
	"and the directory stays where it is" || explain
finish
sweep >/dev/null
RUN_FLAGS=

# File systems that cannot rename without replacing, with hard links and without.
cat >"$scratch/files.py" <<'END'
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
files = [open(name, 'w+') for name in ('missing', 'new', 'directory')]
for f in files:
    print('then', file=f, flush=True)
print('ready', flush=True)
signal.sigwait({signal.SIGUSR1})
for f in files:
    print('and on', file=f, flush=True)
print('ok' if all(open(f.name).read() == 'then\nand on\n' for f in files) else 'differs', flush=True)
END
RUN_FLAGS=--save-files=1M
for how in --no-noreplace "--no-noreplace --no-links"; do
	arena replacing
	name=${how// --/, }
	name=${name#--}
	launch python3 "$scratch/files.py" && freeze_away && rm missing new directory && echo now >new && mkdir directory && : >directory/in
	echo before | tee new.trecr-aside directory.trecr-aside >/dev/null
	# shellcheck disable=SC2086
	confine $how trecr-restart -D ck </dev/null >restart.out 2>>restart.err
	case $? in
	0) result 0 "$name: files are put back" ;;
	77)
		skip "$name: files are put back" "no seccomp filters"
		sweep >/dev/null
		continue
		;;
	*) result 1 "$name: files are put back" || explain ;;
	esac
	sup=$(cat restart.out)
	finish
	is "$(tail -n 1 out)" ok "$name: and the program finds them as they were" || explain
	is "$(cat -- *.trecr-aside new.trecr-aside.1 | xargs) $(ls directory.trecr-aside.1)" "before before now in" \
		"$name: what was there is beside them, and nothing was replaced" || explain
	is "$(find . -path ./ck -prune -o -type f -print | sed 's|^./||' | grep -vx 'out\|.*err' | sort | xargs)" \
		"directory directory.trecr-aside directory.trecr-aside.1/in missing new new.trecr-aside new.trecr-aside.1 restart.out" \
		"$name: and nothing else" || explain
	sweep >/dev/null
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
