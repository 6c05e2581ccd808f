#!/bin/bash
# Programs on a real GPU do with a lower half what they do natively. Needs nvidia-smi and nvcc,
# for one part python3 with PyTorch; skipped where they are not. Prints what it costs, from
# processes that take turns. RUNS=N sets how often that is measured.
TEST_LIMIT=${TEST_LIMIT:-600}
. "${0%/*}/lib.sh"

audit=$build/lib/trecr/libtrecr-audit.so
runs=${RUNS:-2}

# Without the time that PyTorch's programs say on standard error.
natively() {
	timeout 120 "$@" 2>err.native
	echo "status $?"
}

below() {
	LD_AUDIT=$audit TRECR_TEST_SPLIT=1 timeout 120 "$@" 2>err.split
	echo "status $?"
}

both() {
	natively "$@" >native
	below "$@" >with
}

same() {
	like "$(cat native)" 'status 0$' "$1 works natively" || diag "$(tail -n 3 native err.native)"
	is "$(cat with)" "$(cat native)" "$1 is the same with a lower half" ||
		diag "$(tail -n 3 err.split)"
}

compile compute "$gpu/compute.cu" & compile compute-shared "$gpu/compute.cu" -cudart shared &
compile threads "$gpu/threads.cu" & compile forks "$gpu/forks.cu" &
compile cost "$gpu/cost.cu" & compile memory "$gpu/memory.cu" -lcuda &
# The tests of memory that check themselves; the driver's library for linking is the toolkit's.
compile held-memory "$top/t/split/memory.c" -x c -I"$build/stubs/gen" -D_GNU_SOURCE -lcuda &
wait
job "a program with the runtime inside" both "$PWD/compute"
job "a program with libcudart.so" both "$PWD/compute-shared"
job "threads, signals and callbacks" both "$PWD/threads"
job "children of fork" both "$PWD/forks"
if torch_has_gpu; then
	for ((i = 0; i < runs; i++)); do
		job "PyTorch, run $i" both python3 "$gpu/train.py"
	done
else
	skip "PyTorch" "not here"
fi
verdicts same
# Takes all memory there is.
both ./held-memory
same "memory"
is "$(head -n 1 native)" "done" "and it is as the tests expect"

# ---- what it costs ----

# turns COMMAND...: a table
turns() {
	"$top/bench/turns" -n 20 -p "$runs" -c 1-4 -v native= -v "split=LD_AUDIT=$audit" -- "$@"
}

# sorted FIELD FILE: second words of the lines that begin with FIELD
sorted() {
	awk -v name="$1" '$1 == name { print $2 }' "$2" | sort -n
}

compare() { # FIELD...: medians
	for field; do
		diag "$(paste <(sorted "$field" native.out) <(sorted "$field" split.out) |
			awk -v name="$field" '{ n[NR] = $1; s[NR] = $2 } END {
				m = int((NR + 1) / 2)
				printf "%s: native %s, split %s; ratio of medians %.3f\n", \
					name, n[m], s[m], s[m] / n[m] }')"
	done
}

note "$(turns ./cost)"
torch_has_gpu && note "$(turns python3 "$gpu/cost.py")"
for ((i = 0; i < runs; i++)); do
	natively ./memory >>native.out
	below ./memory >>split.out
done
compare fresh-4K fresh-2M fresh-1G alloc-free-4K alloc-free-2M alloc-free-1G alloc-free-quarter \
	pooled-4K pooled-2M pooled-2M-wait pinned-4K pinned-2M pinned-256M attribute

done_testing
