#!/bin/bash
# Programs on a real GPU are checkpointed at random moments, ended and restarted, and say to the last
# bit what they say undisturbed. RESTARTS=N sets how often. Needs nvidia-smi and nvcc, for one
# part python3 with PyTorch; skipped where they are not.
TEST_LIMIT=${TEST_LIMIT:-900}
export TEST_LIMIT
. "${0%/*}/../lib.sh"

restarts=${RESTARTS:-3}
gpu=$top/t/gpu

if ! nvidia-smi >nvidia.out 2>&1 || ! command -v nvcc >/dev/null; then
	skip_all "no NVIDIA GPU, or no nvcc"
fi

compile() { # OUTPUT SOURCE OPTION...
	nvcc -I"$top" -O2 -arch=native "${@:3}" -o "$1" "$gpu/$2" || diag "nvcc has failed for $2"
}

compile state state.cu & compile state-shared state.cu -cudart shared &
compile driver driver.c -lcuda & compile driver.ptx driver_kernels.cu -ptx &
wait

# The moment is random: it is what is tested.
moment() {
	perl -e 'select undef, undef, undef, 0.1 + rand(0.6)'
}

# gone PID: the process, which is not ours to wait for, has ended.
gone() {
	local i
	for ((i = 0; i < 600; i++)); do
		kill -0 "$1" 2>/dev/null || return 0
		perl -e 'select undef, undef, undef, 0.05'
	done
	return 1
}

# cycles COMMAND...: run it, checkpointed and restarted; what it says is in `out`.
cycles() {
	local i
	rm -rf ck out pid
	trecr-run --gpu=on -d ck "$@" >out 2>run.err &
	sup=$!
	await -t 120 -p $sup out '.' >/dev/null || return
	for ((i = 0; i < restarts; i++)); do
		moment
		kill -0 "$sup" 2>/dev/null || break
		trecr-ckpt -s "$sup" >/dev/null 2>>run.err || return
		gone "$sup" || return
		trecr-restart -D --pidfile=pid ck >/dev/null 2>>run.err </dev/null || return
		sup=$(cat pid)
	done
	diag "$i restarts"
	[ "$i" -gt 0 ] && gone "$sup"
}

same() { # NAME COMMAND...
	timeout 200 "${@:2}" >expected 2>native.err
	is "$?" 0 "$1 works natively"
	ok "$1 is restarted" cycles "${@:2}" || diag "$(tail -n 3 run.err)"
	is "$(cat out)" "$(cat expected)" "$1 says the same"
}

same "a program with the runtime inside" ./state 8000
same "a program with libcudart.so" ./state-shared 8000
same "a program on the driver API, with PTX and two contexts" ./driver driver.ptx 200000

if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
	same "PyTorch, a dense network" python3 "$gpu/train_long.py" dense 4000
	same "PyTorch, a convolution" python3 "$gpu/train_long.py" conv 3000
else
	skip "PyTorch" "not here"
fi

done_testing
