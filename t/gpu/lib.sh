# lib.sh - what t/gpu/*.t have in common: the test is skipped where there is no GPU, and what
# compiles and runs does so side by side. To be sourced first thing, TEST_LIMIT set.
# shellcheck shell=bash
export TEST_LIMIT
# Several files side by side keep the driver waiting: a program takes 13 s to start then, in place of 1.
PATIENCE=${PATIENCE:-300}
. "${0%/*}/../lib.sh"

gpu=$top/t/gpu

if ! nvidia-smi >nvidia.out 2>&1 || { [ "${NEED_NVCC:-yes}" = yes ] && ! have nvcc; }; then
	skip_all "no NVIDIA GPU, or no nvcc"
fi
diag "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader)"

# compile OUTPUT SOURCE OPTION...
compile() {
	nvcc -I"$top" -O2 -arch=native "${@:3}" -o "$1" "$2" || diag "nvcc has failed for $2"
}

python_has() { # MODULE
	python3 -c "import $1" 2>/dev/null
}

torch_has_gpu() {
	python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null
}

jobs=()

# job NAME FUNCTION [ARGUMENT...]: in the background, in a directory of its own, where it leaves
# files for what judges it (see `verdicts`); no more than JOBS at once.
job() {
	local here=$scratch/job${#jobs[@]}
	while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-4}" ]; do wait -n; done
	mkdir "$here"
	jobs+=("$1")
	(cd "$here" && "${@:2}") &
}

# verdicts FUNCTION: when all jobs have ended, FUNCTION NAME in the directory of each.
verdicts() {
	local i
	wait
	for ((i = 0; i < ${#jobs[@]}; i++)); do
		cd "$scratch/job$i" || exit
		"$1" "${jobs[i]}"
	done
	cd "$scratch" || exit
	jobs=()
}
