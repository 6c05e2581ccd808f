#!/bin/bash
# Programs of several processes, as they come: shells, interpreters, a build.
. "$(dirname "$0")/lib.sh"

# Until the test lets it: said by the file "go".
wait_go='while [ ! -e go ]; do sleep 0.05; done'

twice_and_go() {
	freeze_away && step="first restart" && restart_detached && step="second checkpoint" &&
		freeze_away && step="second restart" && restart_here && step="going on" &&
		touch go && await -t 60 -p "$sup" 2>>await.err || return 1
	wait "$sup"
	status=$?
	step="its own checks"
	[ $status = 0 ] && [ "$(tail -n 1 out)" = ok ]
}

program() { # NAME COMMAND...
	scenario "$1: restarted twice in a row" twice_and_go "${@:2}"
}

program "a pipeline of bash" bash -c "
	(seq 1 20000; $wait_go; seq 20001 40000) | sort -n | (echo ready; cat) | {
		n=0
		while read -r line; do [ \$((n++)) = 0 ] && echo \"\$line\"; done
		[ \$n = 40001 ] && echo ok
	}"

have dash && program "jobs of dash" dash -c "
	sleep 1000 & s=\$!
	($wait_go; exit 7) & w=\$!
	echo ready
	wait \$w
	[ \$? = 7 ] || exit 1
	kill \$s
	wait \$s
	[ \$? = 143 ] && echo ok"

have perl && program "fork in perl" perl -e '
	$| = 1;
	pipe(R, W);
	$pid = fork;
	if (!$pid) {
		close R;
		select(undef, undef, undef, 0.05) until -e "go";
		print W "hello\n";
		exit 3;
	}
	close W;
	print "ready\n";
	$line = <R>;
	waitpid($pid, 0);
	print(($? >> 8) == 3 && $line eq "hello\n" ? "ok\n" : "bad\n")'

have python3 && program "multiprocessing.Pool of python" python3 -c '
import multiprocessing, os, select
started = multiprocessing.Value("i", 0)
def square(x):
    started.value += 1
    while not os.path.exists("go"):
        select.select([], [], [], 0.02)
    return x * x
with multiprocessing.get_context("fork").Pool(4) as pool:
    result = pool.map_async(square, range(40))
    while not started.value:
        select.select([], [], [], 0.01)
    print("ready", flush=True)
    print("ok" if result.get() == [x * x for x in range(40)] else "bad", flush=True)
'

# A build, interrupted while compilers run.
if have make && have gcc; then
	arena make
	mkdir src
	for i in 1 2 3 4 5 6 7 8; do
		for ((k = 0; k < 100; k++)); do
			echo "int f${i}_$k(int x) { int s = $k; while (x--) s += x * s; return s; }"
		done >src/$i.c
	done
	printf '%s\n' 'all: $(patsubst %.c,%.o,$(wildcard src/*.c))' '	@echo ok' \
		'%.o: %.c' '	@echo ready' '	@gcc -O2 -c -o $@ $<' >Makefile
	step=start
	launch make -j2 && step="first checkpoint" && twice_and_go &&
		[ "$(ls src/*.o | wc -l)" = 8 ]
	result $? "make -j2: restarted twice in a row" || { diag "failed at: $step" && explain; }
	sweep >/dev/null
else
	skip "make -j2: restarted twice in a row" "no make or gcc"
fi
done_testing
