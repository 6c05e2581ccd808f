#!/bin/bash
# An image is a core file: gdb, eu-stack and eu-readelf take it as it is.
. "$(dirname "$0")/lib.sh"

# What gdb says against the file it has read. The size of the vector state of processors with AMX is
# news to it in every core file, the kernel's too.
complaints() {
	local known='^$'
	! grep -qw amx_tile /proc/cpuinfo ||
		known='Unexpected size of section .\.reg-xstate/[0-9]*. in core file'
	grep -E 'warning: (core file|Couldn|Unexpected|.*truncated)' gdb.out | grep -v "$known"
}

arena core
launch "$victim/debug"
inside=$(program_of "$sup")
checkpoint || explain
image=$path/$inside
if have gdb; then
	gdb -batch -nx "$victim/debug" "$image" -ex bt -ex 'print global_thing' -ex 'print global_thing.text' \
		-ex 'info threads' -ex 'thread apply all bt' -ex 'info registers rip' >gdb.out 2>&1
	out=$(cat gdb.out)
	like "$out" 'middle \((t=t@entry|t)=0x[0-9a-f]+ <global_thing>\)' "gdb shows frames with arguments"
	like "$out" 'innermost \(argument=(argument@entry=)?123, word=(word@entry=)?0x[0-9a-f]+ "word"\)' "and strings of the program's file"
	like "$out" 'in main \(\)' "down to main"
	like "$out" 'number = 4711' "gdb prints variables"
	like "$out" 'in_the_thread \(argument=(argument@entry=)?99\)' "gdb shows the other thread"
	is "$(grep -cE '^[ *] +[0-9]+ +(Thread|LWP)' gdb.out)" 2 "and no more threads than there are"
	is "$(complaints)" "" "gdb has nothing to complain about"
	gdb -batch -nx "$victim/debug" "$image" -ex 'frame function innermost' -ex 'print heap' -ex 'print local' \
		>gdb.out 2>&1
	like "$(cat gdb.out)" 'a text on the heap' "memory of the heap is there"
	like "$(cat gdb.out)" '= 246' "and of the stack"
else
	skip "gdb" "not installed"
fi
if have eu-stack; then
	out=$(eu-stack --core="$image" -e "$victim/debug" 2>&1)
	like "$out" 'innermost(.|
)*middle(.|
)*main' "eu-stack shows frames"
	like "$out" 'in_the_thread' "of both threads"
else
	skip "eu-stack" "not installed"
fi
if have eu-readelf; then
	eu-readelf -n "$image" >notes 2>notes.err
	is $? 0 "eu-readelf -n"
	for n in PRSTATUS PRPSINFO AUXV FILE X86_XSTATE; do
		like "$(cat notes)" " $n" "note $n"
	done
	is "$(grep -c ' PRSTATUS' notes)" 2 "one PRSTATUS for each thread"
	like "$(cat notes)" "TRECR" "notes of our own"
	is "$(cat notes.err)" "" "nothing is wrong with them"
else
	skip "eu-readelf" "not installed"
fi
trecr-inspect --core plain "$path" 2>inspect.err || diag "$(cat inspect.err)"
have gdb && like "$(gdb -batch -nx "$victim/debug" plain -ex bt 2>&1)" 'innermost \(argument=(argument@entry=)?123' "--core makes one that gdb reads"
finish
is "$status" 0 "the program is whole" || explain

# An incremental image is no full core: --core makes one of it.
arena chain
RUN_FLAGS=--incremental
launch "$victim/debug"
checkpoint
checkpoint
trecr-inspect --core plain "$path" 2>inspect.err || diag "$(cat inspect.err)"
have gdb && like "$(gdb -batch -nx "$victim/debug" plain -ex bt -ex 'print global_thing.number' 2>&1)" \
	'innermost \(argument=(argument@entry=)?123(.|
)*4711' "--core of an incremental image"
finish

# Of processes that share their memory the first one's file shows them all.
arena shared
RUN_FLAGS=
launch "$victim/tree_clones" threads
inside=$(program_of "$sup")
checkpoint || explain
mapfile -t others < <(cd "$path" && ls | grep -vx -e job -e "$inside" | sort -n)
trecr-inspect --core plain "$path" 2>inspect.err || diag "$(cat inspect.err)"
if have gdb; then
	gdb -batch -nx "$victim/tree_clones" "$path/$inside" -ex 'thread apply all bt' >gdb.out 2>&1
	for other in "${others[@]}"; do
		like "$(cat gdb.out)" "LWP $other\)[^L]*tree_pass[^L]*begin" "process $other is there, too"
		like "$(gdb -batch -nx "$victim/tree_clones" "plain.$other" -ex bt 2>&1)" \
			'tree_pass .*begin' "and has a whole core file of its own"
	done
else
	skip "gdb" "not installed"
fi
like "$(trecr-inspect "$path")" "memory in common with $inside" "trecr-inspect shows it"
is "$(trecr-inspect --stack "$path" | grep -c 'begin+')" "${#others[@]}" "and shows their stacks"
finish
is "$status" 0 "the program is whole" || explain
done_testing
