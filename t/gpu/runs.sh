# runs.sh - of t/gpu/*.t that run many programs: times, how a run ended, and the end of programs.
# shellcheck shell=bash

milliseconds() {
	local t=$EPOCHREALTIME
	echo $((${t/[.,]/} / 1000))
}

# timed NAME COMMAND...: its status; the milliseconds are added to the file NAME.
timed() {
	local start status
	start=$(milliseconds)
	"${@:2}"
	status=$?
	echo $(($(milliseconds) - start)) >>"$1"
	return $status
}

# Up to so many milliseconds: the moment is what is tested.
pause_at_random() {
	perl -e 'select undef, undef, undef, rand($ARGV[0]) / 1000' "$1"
}

# tree PID: it and all below it.
tree() {
	local child
	echo "$1"
	for child in $(cat /proc/"$1"/task/*/children 2>/dev/null); do tree "$child"; done
}

# Ends a program and its supervisor as a machine that fails does.
fell() {
	local pids pid
	pids=$(tree "$1")
	# shellcheck disable=SC2086
	kill -KILL $pids 2>/dev/null
	for pid in $pids; do await -t 30 -p "$pid" || return; done
}

# outcome WORD...: how the row ended, for the table. Fails, for a caller that returns.
outcome() {
	echo "$*" >outcome
	return 1
}

# Last words of a tool or program that has failed.
last_of() {
	grep -v '^ *$' "$1" 2>/dev/null | tail -n 1 | cut -c1-200
}

# mean FILE: of milliseconds, in seconds
mean() {
	awk '{ s += $1 } END { if (NR) printf "%.1f", s / NR / 1000; else printf "-" }' "$1" 2>/dev/null ||
		printf -- -
}
