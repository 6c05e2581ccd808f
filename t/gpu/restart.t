#!/bin/bash
# Programs on a real GPU are checkpointed at random moments, ended and restarted, and say to the last
# bit what they say undisturbed. RESTARTS=N sets how often, JOBS=N how many run side by side,
# ROWS=REGEX which of them;
# CUDART12 is the path of a libcudart.so.12, where there is one. Needs nvidia-smi and nvcc, for some
# parts python3 with PyTorch and CuPy; skipped where they are not.
TEST_LIMIT=${TEST_LIMIT:-900}
. "${0%/*}/lib.sh"
. "$gpu/runs.sh"

restarts=${RESTARTS:-3}

compile state "$gpu/state.cu" & compile state-shared "$gpu/state.cu" -cudart shared &
compile streams "$gpu/streams.cu" & compile numbers "$gpu/numbers.cu" &
compile numbers-shared "$gpu/numbers.cu" -cudart shared &
compile kept "$gpu/kept.cu" -lcuda & compile heap "$gpu/heap.cu" &
compile managed "$gpu/managed.cu" & compile graphs "$gpu/graphs.cu" -rdc=true -lcudadevrt -lcublas -lcuda &
compile user_objects "$gpu/user_objects.cu" -lcuda &
compile textures "$gpu/textures.cu" -lcuda & compile linker "$gpu/linker.c" -lcuda &
compile driver "$gpu/driver.c" -lcuda & compile driver.ptx "$gpu/driver_kernels.cu" -ptx &
gcc -O1 -o runtime "$gpu/runtime.c" -ldl &
wait

# The moment is random: it is what is tested. In all they are less than `span` milliseconds.
moment() {
	perl -e 'select undef, undef, undef, rand(0.5 * $ARGV[0] / $ARGV[1]) / 1000' "$span" "$restarts"
}

# natively COMMAND...: what it says is in `expected`, the time from its first line on is `span`.
natively() {
	local pid start
	"$@" >expected 2>native.err &
	pid=$!
	await -t "$PATIENCE" -p $pid expected '.' >/dev/null || return
	start=$(milliseconds)
	wait $pid || return
	span=$(($(milliseconds) - start))
}

# in_time COMMAND...: run it, checkpointed and restarted; what it says is in `out`. 2: it had ended
# before the last checkpoint.
in_time() {
	local i
	rm -rf ck
	trecr-run --gpu=on -d ck "$@" >out 2>run.err &
	sup=$!
	await -t "$PATIENCE" -p $sup out '.' >/dev/null || return
	for ((i = 0; i < restarts; i++)); do
		moment
		if ! trecr-ckpt -s -t "$PATIENCE" "$sup" >/dev/null 2>>run.err; then
			await -t 5 -p "$sup" 2>>run.err && return 2
			return 1
		fi
		await -t "$PATIENCE" -p "$sup" || return
		# Not the terminal's or the test's descriptors: it outlives this shell.
		trecr-restart -D --pidfile=pid ck >/dev/null 2>>run.err </dev/null || return
		sup=$(cat pid)
	done
	await -t "$PATIENCE" -p "$sup" 2>>run.err
}

# The native run may have been a slow one, beside others.
cycles() {
	local status
	for _ in 1 2 3; do
		in_time "$@"
		status=$?
		[ $status = 2 ] || return $status
		span=$((span / 3))
	done
	return 1
}

# periodic COMMAND...: a checkpoint every 5 seconds, no end that anybody knows of before, and a
# restart from the last one there is.
periodic() {
	trecr-run --gpu=on -i 5 -d ck "$@" >out 2>run.err &
	sup=$!
	await -t "$PATIENCE" -p $sup -e ck/ckpt-000002 || return
	moment
	# shellcheck disable=SC2046
	kill -KILL $(tree "$sup")
	wait "$sup"
	trecr-restart -D --pidfile=pid ck >/dev/null 2>>run.err </dev/null || return
	await -t "$PATIENCE" -p "$(cat pid)" 2>>run.err
}

# undisturbed_and WAY COMMAND...: as a job, for `judge`.
undisturbed_and() {
	natively "${@:2}"
	echo $? >native.status
	"$1" "${@:2}"
	echo $? >status
}

judge() {
	is "$(cat native.status)" 0 "$1 works natively" || diag "$(tail -n 3 native.err)"
	is "$(cat status)" 0 "$1 is restarted" || diag "$(tail -n 3 run.err)"
	isnt "$(cat expected)" "" "$1 says something"
	is "$(cat out)" "$(cat expected)" "and says the same" ||
		diag "$(diff expected out | head -n 5)"
}

same() { # NAME WAY COMMAND...
	[[ $1 =~ ${ROWS:-.} ]] || return 0
	job "$1" undisturbed_and "${@:2}"
}

same "a program with the runtime inside" cycles "$PWD/state" 8000
same "a program with libcudart.so" cycles "$PWD/state-shared" 8000
same "a program on the driver API, with PTX and two contexts" \
	cycles "$PWD/driver" "$PWD/driver.ptx" 200000
same "linker states in every stage" cycles "$PWD/linker" "$PWD/driver.ptx" 1000000
same "16 threads with a stream each" cycles "$PWD/streams" 16000
same "the same under 1000 signals a second" cycles "$PWD/streams" 16000 signals
same "products, sums, cooperative launches, printf in kernels" cycles "$PWD/numbers" 20000
same "the same with libcudart.so" cycles "$PWD/numbers-shared" 20000
same "variables in two contexts, settings, numbers" cycles "$PWD/kept" 20000
same "graphs of all kinds" cycles "$PWD/graphs" 10000
same "user objects of graphs" cycles "$PWD/user_objects" 2000
same "arrays, textures and surfaces" cycles "$PWD/textures" 20000
same "managed memory" cycles "$PWD/managed" 20000
if [ -n "${CUDART12:-}" ]; then
	same "libcudart 12" cycles "$PWD/runtime" "$CUDART12" "$PWD/driver.ptx" 400000
fi
if python_has cupy; then
	same "cuBLAS, cuRAND and cuFFT through CuPy" cycles python3 "$gpu/libraries.py" 8000
fi
if torch_has_gpu; then
	same "PyTorch, a dense network" cycles python3 "$gpu/train_long.py" dense 4000
	same "PyTorch, a convolution" cycles python3 "$gpu/train_long.py" conv 3000
	same "PyTorch, expandable segments" \
		cycles env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True \
		python3 "$gpu/train_long.py" dense 3000
	same "PyTorch, with a DataLoader's workers and a child" \
		cycles python3 "$gpu/train_beside.py" 1000
	same "PyTorch, a checkpoint every 5 seconds" \
		periodic python3 "$gpu/train_long.py" dense 20000
fi
verdicts judge
[ -n "${CUDART12:-}" ] || skip "libcudart 12" "CUDART12 is not set"
python_has cupy || skip "CuPy" "not here"
torch_has_gpu || skip "PyTorch" "not here"

RUN_FLAGS=--gpu=on

# Memory that a kernel has allocated is the driver's, and cannot be looked at.
arena heap
if launch "$scratch/heap"; then
	not_ok "a kernel has used malloc: no checkpoint" quiet checkpoint
	like "$(cat ckpt.err)" "its kernel .*take.* has used malloc on the device" "and why"
	finish && [ "$status" = 0 ] && said_ok
	result $? "and the program is unharmed" || explain
fi
sweep 2 >/dev/null

# NVML, which PyTorch uses, and a program that has asked the driver for no context.
cycle "$build/t/split/stateless"
cycle "$build/t/split/stateless" 1000
cycle "$build/t/split/family"
cycle "$build/t/split/gone"
cycle "$build/t/split/gone" primary

done_testing
