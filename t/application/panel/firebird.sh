#!/bin/bash
# Packages: firebird3.0-server. Needs: isql-fb /usr/sbin/firebird. Options: --save-files
# The server with two clients, whose transactions are open.
export FIREBIRD=$PWD/fb FIREBIRD_LOCK=$PWD/lock FIREBIRD_TMP=$PWD/lock ISC_USER=sysdba ISC_PASSWORD=p
mkdir fb lock
lib=/usr/lib/x86_64-linux-gnu/firebird/3.0
cp -rL $lib/. fb/


printf 'RemoteServicePort = %s\nRemoteBindAddress = 127.0.0.1\nSecurityDatabase = %s\nServerMode = Super\nWireCrypt = Disabled\nAuthServer = Srp\nAuthClient = Srp\nRemoteAuxPort = 0\nUserManager = Srp\nDatabaseAccess = Full\n' \
	"$PORT" "$PWD/security.fdb" >fb/firebird.conf
printf 'security.db = %s\n{\n\tRemoteAccess = true\n\tDefaultDbCachePages = 50\n}\n' "$PWD/security.fdb" >fb/databases.conf
isql-fb -q -user sysdba >prepare 2>&1 <<END
create database '$PWD/security.fdb';
create user sysdba password 'p';
commit;
END
/usr/sbin/firebird >server.log 2>&1 &
server=$!
until (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; do kill -0 $server || exit 1; sleep 0.05; done
db=127.0.0.1/$PORT:$PWD/data.fdb
isql-fb -q >>prepare 2>&1 <<END
create database '$db' page_size 8192;
create table t (k integer not null primary key, v varchar(100));
set term ^;
execute block as declare n integer = 0; begin while (n < 3000) do begin insert into t values (:n, 'value ' || :n); n = n + 1; end end^
set term ;^
commit;
END
mkfifo ask
isql-fb -q "$db" <ask >answers 2>&1 &
client=$!
exec 3>ask
echo 'set list on; update t set v = v || v where mod(k, 7) = 0; select sum(char_length(v)) from t;' >&3
until grep -q SUM answers; do kill -0 $client || exit 1; sleep 0.05; done
echo ready
turn=0
while [ ! -e go ]; do
	echo "select 'turn ' || $turn as turn from rdb\$database;" >&3
	until grep -q "turn $turn\$" answers || grep -q "turn $turn " answers; do kill -0 $client || exit 1; sleep 0.02; done
	turn=$((turn + 1))
done
echo 'update t set v = null where k > 2990; commit; select count(*) from t where v is null; exit;' >&3
exec 3>&-
wait $client
echo "client $?"
grep -E 'SUM|COUNT' answers
echo 'set list on; select sum(char_length(v)) s from t;' | isql-fb -q "$db" | grep S
kill -KILL $server # it may wait long for connections that are no more
wait $server
echo "server $?" # killed
