#!/bin/bash
# Programs on a real GPU do with a lower half what they do natively. Needs nvidia-smi and nvcc,
# for one part python3 with PyTorch; skipped where they are not. Prints what it costs, from
# interleaved runs.
TEST_LIMIT=${TEST_LIMIT:-600}
export TEST_LIMIT
. "${0%/*}/../lib.sh"

audit=$build/lib/trecr/libtrecr-audit.so
runs=${RUNS:-5}

if ! nvidia-smi >nvidia.out 2>&1 || ! command -v nvcc >/dev/null; then
	skip_all "no NVIDIA GPU, or no nvcc"
fi
diag "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader)"

natively() {
	timeout 120 "$@" 2>&1
}

split() {
	LD_AUDIT=$audit timeout 120 "$@" 2>&1
}

same() { # NAME COMMAND...
	local expected
	expected=$(natively "${@:2}"; echo "status $?")
	like "$expected" 'status 0$' "$1 works natively"
	is "$(split "${@:2}"; echo "status $?")" "$expected" "$1 is the same with a lower half"
}

compile() { # NAME OPTION...
	nvcc -I"$top" -O2 -arch=native "${@:2}" -o "$1" "$top/t/gpu/${1%%-*}.cu" ||
		diag "nvcc has failed for $1"
}

compile compute & compile compute-shared -cudart shared & compile threads &
compile forks & compile cost & compile memory -lcuda &
wait
# The tests of memory that check themselves; the driver's library for linking is the toolkit's.
nvcc -x c -I"$top" -D_GNU_SOURCE -O1 -o held-memory "$top/t/split/memory.c" -lcuda ||
	diag "nvcc has failed for t/split/memory.c"
same "a program with the runtime inside" ./compute
same "a program with libcudart.so" ./compute-shared
same "threads, signals and callbacks" ./threads
same "children of fork" ./forks
is "$(natively ./held-memory)" "done" "memory is natively as the tests expect"
is "$(TRECR_TEST_SPLIT=1 split ./held-memory)" "done" "and the same with a lower half"

# sorted FIELD FILE: second words of the lines that begin with FIELD
sorted() {
	awk -v name="$1" '$1 == name { print $2 }' "$2" | sort -n
}

compare() { # FIELD...: runs differ by some percent, the shortest ones least
	for field; do
		diag "$(paste <(sorted "$field" native.out) <(sorted "$field" split.out) |
			awk -v name="$field" '{ n[NR] = $1; s[NR] = $2 } END {
				m = int((NR + 1) / 2)
				printf "%s: native %s, split %s; ratio of medians %.3f, ", \
					name, n[m], s[m], s[m] / n[m]
				printf "of minima %.3f\n", s[1] / n[1] }')"
	done
}

for ((i = 0; i < runs; i++)); do
	natively ./cost >>native.out
	split ./cost >>split.out
	natively ./memory >>native.out
	split ./memory >>split.out
done
compare cudaStreamQuery launch launch-and-wait fresh-4K fresh-2M fresh-1G alloc-free-4K \
	alloc-free-2M alloc-free-1G alloc-free-quarter pooled-4K pooled-2M pooled-2M-wait pinned-4K \
	pinned-2M pinned-256M attribute

if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
	for ((i = 0; i < runs; i++)); do
		timeout 120 python3 "$top/t/gpu/train.py" >losses.native 2>>native.out
		LD_AUDIT=$audit timeout 120 python3 "$top/t/gpu/train.py" \
			>losses.split 2>>split.out
		is "$(cat losses.split)" "$(cat losses.native)" "PyTorch: losses of run $i"
	done
	like "$(cat losses.native)" '^0x' "there are losses"
	compare step
else
	skip "PyTorch" "not here"
fi

done_testing
