#!/bin/bash
# --save-files: contents of files that a program writes to come back with it, whatever has become
# of them since; what is there is moved aside, and named.
. "$(dirname "$0")/lib.sh"

have python3 && python3 -c 'import sqlite3' 2>/dev/null || skip_all "no python3 with sqlite3"

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
