#!/bin/bash
# PostgreSQL with clients at work: pgbench with three connections, and a session in the middle of
# a transaction that holds a lock, which another session waits for.
#
#	postgres.sh BIN [COMMAND...]
#
# BIN is the folder of its programs; COMMAND runs one of them as an ordinary user.
bin=$1
shift
export PGHOST=$PWD/data PGDATABASE=postgres PGUSER=trecr PGCONNECT_TIMEOUT=60
ask() {
	"$bin/psql" -qAtX -v ON_ERROR_STOP=1 "$@"
}

"$@" "$bin/initdb" -D data/base -U trecr -A trust --no-sync --no-locale -E UTF8 \
	>initdb.log 2>&1 || { cat initdb.log; exit 1; }
"$@" "$bin/postgres" -D data/base -k "$PGHOST" -c listen_addresses= -c shared_buffers=4MB \
	-c autovacuum_naptime=1s -c min_parallel_table_scan_size=0 -c parallel_setup_cost=0 \
	>postgres.log 2>&1 &
server=$!
until "$bin/pg_isready" -q; do
	kill -0 $server || { cat postgres.log; exit 1; }
	sleep 0.02
done

# "more" lets the load end: a division by zero then ends all of its connections.
ask <<'END'
CREATE TABLE account(id int PRIMARY KEY, n int NOT NULL);
CREATE TABLE history(client int, id int);
CREATE TABLE kept(id serial, client int, n bigint);
CREATE TABLE more(yes int);
INSERT INTO more VALUES (1);
INSERT INTO account SELECT i, 0 FROM generate_series(1, 100) i;
END
cat >load.sql <<'END'
\set id random(1, 100)
SELECT 1 / yes FROM more;
BEGIN;
UPDATE account SET n = n + 1 WHERE id = :id;
INSERT INTO history VALUES (:client_id, :id);
COMMIT;
END
cat >counted.sql <<'END'
INSERT INTO kept(client, n) SELECT :client_id, sum(i) FROM generate_series(1, 100) i;
END
"$bin/pgbench" -n -c 3 -j 3 -M prepared -t 10000000 -f load.sql >load.log 2>&1 &
load=$!
ask >session.out 2>&1 <<'END' &
CREATE TEMPORARY TABLE own(x int);
BEGIN;
SELECT pg_advisory_xact_lock(1);
LOCK TABLE kept IN SHARE MODE;
INSERT INTO own SELECT * FROM generate_series(1, 10000);
DECLARE c CURSOR FOR SELECT x FROM own ORDER BY x DESC;
FETCH 2 FROM c;
\! while [ ! -e go ]; do sleep 0.05; done
FETCH 2 FROM c;
SELECT sum(x), count(*) FROM own;
COMMIT;
END
session=$!
session=$!
# until_locks NUMBER GRANTED: or the session has ended.
until_locks() {
	until [ -e go ] || [ "$(ask -c "SELECT count(*) FROM pg_locks WHERE
			locktype = 'advisory' AND granted = $2")" = "$1" ]; do
		sleep 0.02
	done
}
until_locks 1 true
ask >waiting.out 2>&1 <<'END' &
BEGIN;
SELECT 'waited' FROM pg_advisory_xact_lock(1);
INSERT INTO kept(client, n) VALUES (-1, 1);
COMMIT;
END
waiting=$!
until_locks 1 false
until [ "$(ask -c 'SELECT count(*) > 50 FROM history')" = t ]; do sleep 0.02; done
echo ready
wait $session
echo "session $?"
wait $waiting
echo "waiting $?"
cat session.out waiting.out
ask -c 'UPDATE more SET yes = 0'
wait $load
"$bin/pgbench" -n -c 4 -j 2 -t 25 -f counted.sql >counted.log 2>&1
echo "pgbench $?"
ask <<'END'
SELECT sum(n) = (SELECT count(*) FROM history) FROM account;
SELECT count(*), sum(n), max(id) FROM kept;
SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend';
END
# All that it had to say but for the load's end.
grep -E 'FATAL|PANIC|WARNING|ERROR' postgres.log | grep -Ev 'division by zero|starting up'
kill -INT $server
wait $server
echo "server $?"
