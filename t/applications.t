#!/bin/bash
# Programs as their users run them, restarted twice in a row; what they give must be what an
# undisturbed run gives. Each prints ready and goes on when the file "go" is there, or works
# all the time.
. "$(dirname "$0")/lib.sh"

source=$top/t/application

# What the program gives: what it prints after "ready", and the files named in RESULT.
given() {
	sed 1d out
	[ -z "${RESULT:-}" ] || cksum $RESULT
}

undisturbed() {
	: >go
	"$@" </dev/null >out 2>err && given >../undisturbed
	local r=$?
	cd .. && rm -rf x && mkdir x && cd x || exit 1
	return $r
}

disturbed() {
	step="first checkpoint" && freeze_away &&
		step="first restart" && restart_detached && step="second checkpoint" &&
		freeze_away && step="second restart" && restart_here && : >go || return 1
	step="going on"
	await -t 120 -p "$sup" 2>>await.err || return 1
	wait "$sup"
	status=$?
	[ $status = 0 ] && given >../restarted && step="the same result" &&
		cmp ../undisturbed ../restarted >&2 2>>err &&
		step="leaving nothing behind" && sweep 5
}

# application NAME COMMAND...: `prepare` makes what it needs in a fresh directory.
application() {
	local name=$1
	shift
	arena application
	mkdir x && cd x || exit 1
	step="undisturbed"
	prepare && undisturbed "$@" && prepare && step=start && launch "$@" && disturbed
	result $? "$name" || { diag "failed at: $step${status:+ (status $status)}" && explain; }
	sweep >/dev/null
}

nothing() {
	:
}

# ---- a compiler at work: no "go", checkpoints come where they come ----

prepare() {
	for ((k = 0; k < 1500; k++)); do
		echo "int f$k(int x) { int s = $k; while (x--) s += x * s ^ $k; return s; }"
	done >large.c
}
have gcc && RESULT=large.o application "gcc compiling" \
	bash -c 'echo ready; gcc -O2 -pipe -c large.c'

prepare() { nothing; }

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
done_testing
