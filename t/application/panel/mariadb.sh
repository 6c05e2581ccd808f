#!/bin/bash
# Packages: mariadb-server mariadb-client. Needs: mariadbd mariadb-install-db mariadb
user=$(id -un)
mariadb-install-db --no-defaults --datadir="$PWD/data" --user="$user" --auth-root-authentication-method=normal \
	--skip-test-db >install.log 2>&1 || { tail -n 5 install.log; exit 1; }
mariadbd --no-defaults --user="$user" --datadir="$PWD/data" --socket="$PWD/s" --skip-networking \
	--innodb-buffer-pool-size=16M --innodb-use-native-aio="${NATIVE_AIO:-1}" --pid-file="$PWD/pid" >mariadbd.log 2>&1 &
server=$!
ask() {
	mariadb --no-defaults -u root -S "$PWD/s" -BN -e "$1" test
}
until mariadb --no-defaults -u root -S "$PWD/s" -e 'create database test' 2>/dev/null; do
	kill -0 $server || { tail -n 5 mariadbd.log; exit 1; }
	sleep 0.1
done
# To the client a semicolon ends a command of the shell, too.
printf '%s\n' 'while [ ! -e go ]' 'do sleep 0.05' 'done' >wait.sh
ask 'create table t (id int auto_increment primary key, n int) engine=innodb'
{
	echo 'begin;'
	for ((k = 0; k < 500; k++)); do echo "insert into t (n) values ($k);"; done
	echo 'select "ready" as "";'
	echo 'system sh wait.sh'
	echo 'select sum(n), count(*) from t; commit;'
} | mariadb --no-defaults -u root -S "$PWD/s" -BNn test
echo "status $?"
ask 'select sum(n), max(id) from t'
mariadb-admin --no-defaults -u root -S "$PWD/s" shutdown
wait $server
echo "status $?"
