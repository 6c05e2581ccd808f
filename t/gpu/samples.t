#!/bin/bash
# NVIDIA's samples (github.com/NVIDIA/cuda-samples), all that draw nothing: natively, under trecr-run, and with
# a checkpoint at a random moment, the end of the program, and a restart. They print times and rates, so what
# counts is the exit status and what is printed but for numbers.
#
#	CUDA_SAMPLES=DIR	a checkout of them (fetch_samples.sh DIR makes one); skipped without
#	SAMPLES_BUILD=DIR	where they are built, and found built by a later run; the test's own otherwise
#	ARCH=ARCHITECTURE	of the GPU, for CMake (by nvidia-smi)
#	JOBS=N, ROWS=REGEX, LOGS=DIR	as of panel.t
#
# Needs cmake and nvcc.
TEST_LIMIT=${TEST_LIMIT:-3000}
. "${0%/*}/lib.sh"
. "$gpu/runs.sh"

[ -d "${CUDA_SAMPLES:-}/Samples" ] || skip_all "CUDA_SAMPLES names no checkout of NVIDIA's samples"
have cmake || skip_all "no cmake"
builds=${SAMPLES_BUILD:-$scratch/builds}
logs=${LOGS:-$scratch/logs}
limit=${LIMIT:-120}
# Not "native": some samples put it into the name of an architecture themselves.
ARCH=${ARCH:-$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)}

# One architecture instead of all that the samples name.
copy_samples() {
	[ ! -d "$builds/Samples" ] || return 0
	mkdir -p "$builds" && cp -r "$CUDA_SAMPLES"/. "$builds" &&
		find "$builds" -name CMakeLists.txt -exec sed -i -E \
			"s/(set\(CMAKE_CUDA_ARCHITECTURES) .*\)/\1 $ARCH)/" {} +
}

draws() {
	grep -qiE 'opengl|glut|vulkan|egl\b|nvsci|glfw|x11|d3d|direct3d' "$1/CMakeLists.txt"
}

# build_sample FOLDER: in its sources, as samples look for their data there.
build_sample() {
	[ -e "$1/built" ] && return
	{
		cmake -S "$1" -B "$1" -DCMAKE_BUILD_TYPE=Release &&
			cmake --build "$1" -j 2
	} >"$1/build.log" 2>&1 && touch "$1/built"
}

programs_of() {
	find "$1" -maxdepth 1 -type f -perm -u+x -exec sh -c 'head -c 4 "$1" | grep -q ELF' _ {} \; -print
}

# What is printed but for numbers and addresses.
words_of() {
	sed -E 's/0x[0-9a-fA-F]+/N/g; s/[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?/N/g; s/-?(nan|inf)\b/N/g; s/ +/ /g' "$1"
}

# same_as_natively PROGRAM FILE STATUS: threads, and the driver for kernels, may print in any order natively, too, and some
# sample takes the time of day for a seed: then lines count in any order, and where those differ natively, now or before, the
# last one.
same_as_natively() {
	[ "$3" = "$(cat native.status)" ] || return
	words_of "$2" | sort | diff <(words_of native.out | sort) - >"$2.diff" && return
	run again "$1"
	! words_of native.out | sort | cmp -s - <(words_of native.again | sort) ||
		! words_of native.out | sort | cmp -s - <(words_of again.out | sort) || return
	diff <(words_of native.out | tail -n 1) <(words_of "$2" | tail -n 1) >"$2.diff"
}

# run NAME COMMAND...: its output is in NAME.out, its status in NAME.status.
run() {
	timed "$1.ms" timeout -k 5 "$limit" "${@:2}" >"$1.out" 2>"$1.err" </dev/null
	echo $? >"$1.status"
}

natively() {
	run native "$1"
	run again "$1"
	mv again.out native.again
	[ "$(cat native.status)" = "$(cat again.status)" ] ||
		outcome "does not end twice the same natively"
}

undisturbed() {
	run under trecr-run --gpu=on -d ck.under "$1"
	same_as_natively "$1" under.out "$(cat under.status)" ||
		outcome "FAILS under trecr-run (status $(cat under.status)): $(last_of under.err)"
}

# Fails with status 2 when it had ended before the checkpoint.
disturbed() {
	local status
	rm -rf ck
	trecr-run --gpu=on -d ck "$1" >disturbed.out 2>disturbed.err </dev/null &
	sup=$!
	pause_at_random "$span"
	if ! timed ckpt.ms trecr-ckpt -s -t "$PATIENCE" "$sup" >/dev/null 2>ckpt.err; then
		await -t 1 -p "$sup" 2>/dev/null && sup= && return 2
		grep -q "no process\|not run by trecr\|no supervisor" ckpt.err && return 2
		outcome "refused: $(last_of ckpt.err)"
		return
	fi
	await -t "$PATIENCE" -p "$sup" 2>>await.err || outcome "does not end after trecr-ckpt -s" || return
	sup=
	timeout -k 5 "$limit" trecr-restart ck >/dev/null 2>restart.err </dev/null
	status=$?
	! grep -q "cannot restart" restart.err ||
		outcome "RESTART FAILS: $(last_of restart.err)" || return
	same_as_natively "$1" disturbed.out "$status" ||
		outcome "WRONG (status $status): $(grep -m 1 '^>' disturbed.out.diff | cut -c1-80)"
}

try() {
	local status
	natively "$1" || return
	undisturbed "$1" || return
	for part in 1 2 4 8; do
		span=$(($(head -n 1 native.ms) / part))
		disturbed "$1"
		status=$?
		[ $status = 2 ] || break
	done
	[ $status != 2 ] || { echo "too short to be checkpointed" >outcome && return 0; }
	[ $status != 0 ] || echo "same" >outcome
	# That it is refused by name is no failure.
	[ $status = 0 ] || grep -q "^refused" outcome
}

# row PROGRAM: in a folder of its own.
row() {
	local sup=
	try "$1"
	echo $? >status
	[ -z "$sup" ] || fell "$sup" 2>/dev/null
	rm -rf ck ck.under
}

# own_folder NAME FOLDER: of all that the sample has there are links, what it writes is its own.
own_folder() {
	rm -rf "${logs:?}/$1" && mkdir "$logs/$1" && cd "$logs/$1" &&
		find "$2" -maxdepth 1 -mindepth 1 ! -name CMakeFiles -exec ln -s {} . \;
}

sample() { # FOLDER
	local program name
	build_sample "$1" || return
	for program in $(programs_of "$1"); do
		name=$(basename "$program")
		(own_folder "$name" "$1" && row "./$name") 2>"$logs/$name.shell"
	done
}

mkdir -p "$logs" && logs=$(cd "$logs" && pwd) || exit 1
copy_samples || exit 1
builds=$(cd "$builds" && pwd)
: >"$scratch/drawing" && : >"$scratch/not-built"
folders=()
for list in "$builds"/Samples/*/*/CMakeLists.txt; do
	folder=${list%/*}
	[[ ${folder##*/} =~ ${ROWS:-.} ]] || continue
	if draws "$folder"; then
		echo "${folder##*/}" >>"$scratch/drawing"
		continue
	fi
	folders+=("$folder")
	while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-4}" ]; do wait -n; done
	sample "$folder" &
done
wait
line() {
	printf '%-40s %7s %7s %6s  %s\n' "$@"
}
line sample native under ckpt "(seconds, outcome)" >"$scratch/table"
for folder in "${folders[@]}"; do
	[ -e "$folder/built" ] || {
		skip "${folder##*/}" "does not build here: $(last_of "$folder/build.log")"
		continue
	}
	for program in $(programs_of "$folder"); do
		name=$(basename "$program")
		cd "$logs/$name" || exit 1
		result "$(cat status)" "$name: $(cat outcome)"
		line "$name" "$(mean native.ms)" "$(mean under.ms)" "$(mean ckpt.ms)" "$(cat outcome)" \
			>>"$scratch/table"
	done
done
cd "$scratch" || exit 1
diag "$(cat table)"
diag "$(tail -n +2 table | awk '{ $1 = $2 = $3 = $4 = ""; sub(/^ +/, ""); sub(/:.*|\(.*/, ""); n[$0]++ }
	END { for (o in n) printf "%s: %d; ", o, n[o] }')graphics, left out: $(wc -l <drawing)"
done_testing
