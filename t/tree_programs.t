#!/bin/bash
# Programs of several processes as their users run them: shells, interpreters, a build. What they
# give after two restarts is what an undisturbed run gives.
. "$(dirname "$0")/lib.sh"

source=$top/t/application

application "a pipeline of bash, many bytes in it" bash -c "
	(echo ready; seq 1 20000; $wait_go; seq 20001 40000) | cat | cat | {
		read -r first; echo \$first
		while read -r n; do lines=\$((lines + 1)) sum=\$(((sum * 31 + n) % 1000003)); done
		echo \$lines \$sum
	}"
for shell in bash dash; do
	if have "$shell"; then
		application "jobs and pipelines of $shell" "$shell" "$source/jobs.sh"
	else
		skip "jobs and pipelines of $shell" "no $shell"
	fi
done
if have perl; then
	application "fork in perl" perl "$source/fork.pl"
else
	skip "fork in perl" "no perl"
fi
if have python3; then
	for how in fork spawn forkserver; do
		application "multiprocessing of python ($how): pool, queues, manager" \
			python3 "$source/processes.py" $how "trecr-t-$$" ||
			rm -f "/dev/shm/sem.trecr-t-$$-"*
	done
else
	skip "multiprocessing of python" "no python3"
fi

# A build, interrupted while compilers run. Jobs end in any order: only what is made counts.
sources() {
	mkdir -p src
	for i in 1 2 3 4 5 6 7 8; do
		for ((k = 0; k < 100; k++)); do
			echo "int f${i}_$k(int x) { int s = $k; while (x--) s += x * s; return s; }"
		done >src/$i.c
	done
	echo 'extern int f1_0(int), f8_99(int); int main(void) { return f1_0(3) + f8_99(2) - 102; }' \
		>src/main.c
	cp "$source/build.mk" Makefile
}
if have make && have gcc; then
	PREPARE=sources RESULT='program src/1.o src/8.o built' application "make -j4" make -s -j4
else
	skip "make -j4" "no make or gcc"
fi
done_testing
