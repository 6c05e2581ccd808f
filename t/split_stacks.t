#!/bin/bash
# Debuggers see through calls of the driver: from within, out of handlers and callbacks, and at
# each instruction on the way.
. "${0%/*}/lib.sh"

split=$build/t/split
audit=$build/lib/trecr/libtrecr-audit.so
script=$build/lib/trecr/trecr-gdb.py

have gdb || skip_all "gdb is not installed"
gdb -batch -nx -ex 'python print(1)' 2>&1 | grep -qx 1 || skip_all "gdb is without Python"

# stops_at HOW WHAT: stacks, until it says so.
stops_at() {
	arena "$1"
	LD_AUDIT=$audit LD_LIBRARY_PATH=$build/t/sim "$split/stacks" "$1" >out 2>&1 &
	program=$!
	await -t 60 -p $program out "^$2\$" >/dev/null
}

# shows NAME FRAME...: by gdb and by eu-stack, these functions in this order down to main.
shows() {
	local name=$1 frames
	shift
	frames=$(printf '%s(.|\n)*' "$@" main)
	gdb -batch -nx -p $program -ex "source $script" -ex bt >bt 2>gdb.err
	like "$(cat bt)" "$(printf '%b' "$frames")" "$name: gdb"
	if have eu-stack; then
		like "$(eu-stack -1 -p $program 2>&1)" "$(printf '%b' "$frames")" "$name: eu-stack"
	else
		skip "$name: eu-stack" "not installed"
	fi
}

# ends: told to go on, it finds all in order.
ends() {
	kill -USR1 $program
	wait $program
	is "$?$(tail -n 1 out)" 0ok "and the program is unharmed"
}

stops_at inside inside
shows "in a call" cuStreamSynchronize crossing waits_in_the_driver
kill -USR1 $program
await -t 60 -p $program out '^back$' >/dev/null
shows "in a handler that interrupted it" called_by_the_driver cuOccupancy asks_the_driver \
	handler_of_the_program cuStreamSynchronize waits_in_the_driver
ends

stops_at back back
shows "in a function that the driver calls" called_by_the_driver cuOccupancy crossing \
	asks_the_driver
ends

# steps HOW NAME
steps() {
	arena "$1"
	gdb -batch -nx -ex 'set startup-with-shell off' -ex "set environment LD_AUDIT $audit" \
		-ex "set environment LD_LIBRARY_PATH $build/t/sim" \
		-ex "python script = '$script'" -x "$top/t/split/steps.py" \
		--args "$split/stacks" "$1" >steps 2>&1
	like "$(grep "instructions seen" steps)" '^[0-9]{3,} instructions seen, 0 wrong$' "at each instruction$2" ||
		diag "$(grep 'in section' steps | head -n 20)"
}

steps steps ""
steps first ", of a thread's first call, too"
steps guarded ", of a first call that is recorded, too"
done_testing
