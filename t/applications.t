#!/bin/bash
# Programs of one process as their users run them: what they give after two restarts is what an
# undisturbed run gives.
. "$(dirname "$0")/lib.sh"

source=$top/t/application

# No "go": checkpoints come where they come.
large_source() {
	for ((k = 0; k < 1500; k++)); do
		echo "int f$k(int x) { int s = $k; while (x--) s += x * s ^ $k; return s; }"
	done >large.c
}
have gcc && PREPARE=large_source RESULT=large.o application "gcc compiling" \
	bash -c 'echo ready; gcc -O2 -pipe -c large.c'

if have gcc && gcc -std=gnu11 -O2 -fopenmp -o "$scratch/openmp" \
	"$source/openmp.c" 2>/dev/null; then
	application "GNU OpenMP" "$scratch/openmp"
else
	skip "GNU OpenMP" "no gcc with OpenMP"
fi

if have sqlite3; then
	application "sqlite3 in a transaction" sqlite3 -init "$source/transaction.sql" data .quit
else
	skip "sqlite3 in a transaction" "no sqlite3"
fi

if have python3 && python3 -c 'import sqlite3' 2>/dev/null; then
	application "SQLite with a write-ahead log, several processes" \
		python3 "$source/write_ahead.py"
else
	skip "SQLite with a write-ahead log, several processes" "no sqlite3 module of Python"
fi

if have perl; then
	application "perl" perl "$source/words.pl"
else
	skip "perl" "no perl"
fi

if have javac && have java; then
	javac -d "$scratch/classes" "$source/Collect.java"
	for collector in Serial Parallel G1 Z; do
		application "Java, $collector collector" java "-XX:+Use${collector}GC" -Xmx128m \
			-cp "$scratch/classes" Collect
	done
	rmdir "/tmp/hsperfdata_$(id -un)" 2>/dev/null # the virtual machine's
else
	skip "Java" "no JDK"
fi
# The script that has many more is no part of make check, and ends with a status that make sees.
not_ok "a program that the panel does not have is a failure" \
	quiet env PROGRAMS=nobody "$BASH" "$top/t/application/panel.sh"
done_testing
