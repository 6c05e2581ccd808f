# steps.sh - for tests in which something happens at one system call of trecr's own after the other
# (t/fault/fault.c). To be sourced behind lib.sh.
# shellcheck shell=bash

preload="env LD_PRELOAD=$build/t/fault.so TRECR_FAULT=$scratch/fault"

trecr-run() {
	exec $preload "$build/trecr-run" "$@"
}

# The next step: each of the first, then fewer.
further() {
	n=$((n < 8 ? n + 1 : n + n / ${FEWER:-5}))
}

# The program's first process is root, and that or the youngest of its descendants is target.
choose() { # root | last
	root=$(program_of "$sup")
	target=$root
	while [ "$1" = last ] && child=$(cat "/proc/$target/task/$target/children") &&
		[ -n "$child" ]; do
		child=${child% } target=${child##* }
	done
}

untraced() {
	! grep -h '^TracerPid:' /proc/"$1"/task/*/status 2>/dev/null | grep -vq '	0$'
}
