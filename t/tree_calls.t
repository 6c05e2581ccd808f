#!/bin/bash
# What one process more in a tree costs a restart does not grow with the tree, and processes that share nothing are
# brought back at the same time: while one fills its memory, the others get their next step.
. "$(dirname "$0")/lib.sh"

save_tree() { # PROCESSES
	arena "$1"
	# shellcheck disable=SC2016
	launch sh -c 'i=1; while [ $i -lt '"$1"' ]; do sleep 1000 & i=$((i + 1)); done; echo ready; wait' &&
		freeze_away
}

# Which processes run at the same time: how often one is let run while another has not been waited for.
count_together() { # [OPTION...]
	rm -f calls
	LD_PRELOAD="$build/t/calls.so" TRECR_CALLS="$PWD/calls" restart_here "$@" || explain
	sweep >/dev/null
	together=$(awk '$1 == "run" { others += n > 0 && !($2 in runs); n += !($2 in runs); runs[$2] }
		$1 == "stop" && $2 in runs { n--; delete runs[$2] }
		END { print others + 0 }' calls)
}

# How much private memory there is, in KiB, when the first process is made: each gets a copy of its page tables.
count_private() {
	local line first="" last="" sum=0 mapped='^mmap\(NULL, ([0-9]+), .*MAP_PRIVATE\|MAP_ANONYMOUS'
	local unmapped='^munmap\([^,]*, ([0-9]+)\)' break='^brk\(.* = (0x[0-9a-f]+)'

	while read -r line; do
		case $line in clone*) break ;; esac
		[[ ! $line =~ $mapped ]] || sum=$((sum + BASH_REMATCH[1]))
		[[ ! $line =~ $unmapped ]] || sum=$((sum - BASH_REMATCH[1]))
		if [[ $line =~ $break ]]; then
			last=$((BASH_REMATCH[1]))
			first=${first:-$last}
		fi
	done <mmaps
	private=$(((sum + last - first) / 1024))
}

# Mappings that all processes of a restart have in common: each is copied with each process.
count_shared() {
	rm -f pidfile
	strace -e trace=mmap,munmap,brk,clone,clone3 -o mmaps "$build/trecr-restart" --pidfile pidfile ck </dev/null >>out 2>>restart.err &
	sup=$!
	await -t 120 -p $sup pidfile '^[0-9]+$' >/dev/null 2>>await.err || explain
	sweep >/dev/null
	shared=$(grep -c 'MAP_SHARED|MAP_ANONYMOUS' mmaps)
}

processes=12
ok "a tree is saved" save_tree $processes || { done_testing; exit; }
count_together
# Once for each when they execute their programs, and in three steps on the way to their memory.
ok "processes run at the same time ($together times)" [ "$together" -ge $((3 * (processes - 1))) ]
all=$together
count_together -j 1
ok "with -j 1 they are filled one after the other ($together)" [ "$together" -le $((all - 3 * (processes - 2))) ]

# Threads that fill the memory of a process with much of it: if all processes had theirs at once, a restart would take many
# more tasks than the program has, and RLIMIT_NPROC or pids.max would end it.
count_beside_threads() { # [OPTION...]
	rm -f calls
	LD_PRELOAD="$build/t/calls.so" TRECR_CALLS="$PWD/calls" restart_here "$@" && finish && said_ok || explain
	read -r threads beside < <(awk '$1 == "run" { n += !($2 in runs); runs[$2] }
		$1 == "stop" && $2 in runs { n--; delete runs[$2] }
		$1 == "clone" && !($2 in makers) { makers[$2]; beside += n }
		END { print length(makers), beside + 0 }' calls)
}

arena large
ok "a tree with much memory is saved" eval 'launch "$victim/tree_many" 4 9000 && freeze_away' || explain
count_beside_threads -j 8
ok "the memory of each is filled by several threads ($threads have made some)" [ "$threads" -ge 4 ]
is "$beside" 0 "and while a process makes them, no other is on its way"

# How often new processes are let run: for each of their system calls, for batches of these, and for what they do in C.
count_runs() { # PROCESSES
	save_tree "$1" || explain
	count_together
	runs=$(grep -c '^run ' calls)
}
count_runs 2
few=$runs
count_runs 22
each=$(((runs - few) / 20))
ok "a process more that sleeps is let run 8 times ($each)" [ $each -gt 0 -a $each -le 8 ]

if have strace; then
	save_tree $processes || explain
	count_shared
	many=$shared
	save_tree 2 || explain
	count_shared
	few=$shared
	is "$many" "$few" "a process more is no shared mapping more"
	count_private
	few=$private
	save_tree 22 || explain
	count_shared
	count_private
	each=$(((private - few) / 20))
	ok "and less than 24 KiB more of private memory, as images are not private ($each KiB)" [ $each -lt 24 ]
else
	skip "a process more is no shared mapping more" "no strace"
fi
done_testing
