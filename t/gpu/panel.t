#!/bin/bash
# The panel: programs as people run them on a GPU. Each runs natively, under trecr-run undisturbed, and
# over RESTARTS (3) cycles of a checkpoint at a random moment, the end of the program (by trecr-ckpt -s, or by
# SIGKILL some time later) and a restart; what it prints is to be the same to the last bit, or the checkpoint
# is to be refused for the reason that the table expects. The table is t/gpu/panel/rows.
#
#	JOBS=N		rows side by side (4)
#	ROWS=REGEX	which of them
#	LOGS=DIR	a folder for what they leave, one folder a row; the test's own otherwise
#	LIMIT=SECONDS	for one run of a program (240)
#	PANEL_SECONDS=N	how long each takes steps natively (8); the other runs take as many
#	PANEL=FILE	another table
#
# Needs nvidia-smi and what the rows name; nothing is compiled, and nothing but build/ written to.
TEST_LIMIT=${TEST_LIMIT:-3000} NEED_NVCC=no
export NEED_NVCC
. "${0%/*}/lib.sh"
. "$gpu/runs.sh"

restarts=${RESTARTS:-3}
limit=${LIMIT:-240}
logs=${LOGS:-$scratch/logs}
table=${PANEL:-$gpu/panel/rows}
export PANEL_SECONDS=${PANEL_SECONDS:-8}

# moment PART: some time, at random, of `span` milliseconds divided by PART.
moment() {
	pause_at_random $((span / $1))
}

steps_in() {
	grep -c '^step ' "$1"
}

# natively: what it prints is in `expected`.
natively() {
	timed native.ms timeout -k 5 "$limit" sh -c "exec env $1" >expected 2>native.err </dev/null ||
		outcome "does not work natively: $(last_of native.err)" || return
	[ "$(steps_in expected)" -gt 0 ] || outcome "prints no steps natively"
}

# began FILE: the program under $sup has taken its first step.
began() {
	await -t "$limit" -p "$sup" "$1" '^step ' >/dev/null 2>>await.err
}

# differs FILE COMMAND [ERRORS]: what it printed is not what it printed natively. Some program does not even
# print twice the same natively, which is then the row's fault.
differs() {
	! diff expected "$1" >"$1.diff" || return
	if ! tail -n 1 "$1" | grep -q '^end'; then
		outcome "ENDS after $(steps_in "$1") of $(steps_in expected) steps: $(last_of "${3:-$1.err}")"
		return 0
	fi
	timeout -k 5 "$limit" sh -c "exec env $2" >again 2>again.err </dev/null
	if cmp -s expected again; then
		outcome "WRONG: $(sed -n 2p "$1.diff" | cut -c1-60) and then $(grep -m 1 '^>' "$1.diff" |
			cut -c1-60)"
	else
		outcome "does not print twice the same natively"
	fi
	return 0
}

# undisturbed COMMAND: under trecr-run; the time from its first step on is `span`.
undisturbed() {
	local start status
	timed undisturbed.ms timeout -k 5 "$limit" \
		trecr-run --gpu=on -k 1 -d ck sh -c "exec env $1" >undisturbed 2>undisturbed.err </dev/null &
	sup=$!
	began undisturbed
	start=$(milliseconds)
	wait $sup
	status=$?
	sup=
	span=$(($(milliseconds) - start))
	[ $status = 0 ] ||
		outcome "FAILS under trecr-run (status $status): $(last_of undisturbed.err)" || return
	! differs undisturbed "$1"
}

# begin COMMAND: in the background, to be checkpointed.
begin() {
	rm -rf ck out
	trecr-run --gpu=on -k 1 -d ck sh -c "exec env $1" >out 2>>run.err </dev/null &
	sup=$!
	began out || outcome "FAILS under trecr-run, the second time: $(last_of run.err)"
}

# checkpoint [OPTION]: fails with status 2 when the program has ended by itself.
checkpoint() {
	timed ckpt.ms trecr-ckpt -t "$PATIENCE" "$@" "$sup" >/dev/null 2>ckpt.err && return
	! tail -n 1 out | grep -q '^end' || return 2
	outcome "refused: $(last_of ckpt.err)"
}

# Checkpoint and end, in one of two ways, or in the first always.
leave() { # [end]
	if [ "$1" = end ] || [ $((RANDOM % 2)) = 0 ]; then
		echo "checkpoint and end" >>history
		checkpoint -s || return
		await -t "$PATIENCE" -p "$sup" 2>>await.err || outcome "does not end after trecr-ckpt -s" || return
	else
		echo "checkpoint, and SIGKILL later" >>history
		checkpoint || return
		moment $((restarts * 6))
		fell "$sup" 2>>await.err || outcome "does not end by SIGKILL" || return
	fi
	sup=
}

# Not the test's descriptors: it outlives this shell.
come_back() {
	timed restart.ms trecr-restart -D --pidfile=pid ck >/dev/null 2>restart.err </dev/null ||
		outcome "RESTART FAILS: $(last_of restart.err)" || return
	sup=$(cat pid)
}

ended() {
	await -t "$limit" -p "$sup" 2>>await.err && sup= && return
	outcome "HANGS after $(steps_in out) of $(steps_in expected) steps"
}

cycles() { # COMMAND [end]
	local i status
	begin "$1" || return
	for ((i = 0; i < restarts; i++)); do
		moment $((restarts + 1))
		leave "${2:-}"
		status=$?
		[ $status = 0 ] || return $status
		come_back || return
	done
	ended || return
	! differs out "$1" run.err
}

# It may be that it took longer before, beside others: it has ended then, and is tried again.
same() { # COMMAND [end]
	local status
	for _ in 1 2 3; do
		cycles "$@"
		status=$?
		[ $status = 2 ] || return $status
		span=$((span / 3))
	done
	outcome "ends before it has been checkpointed $restarts times"
}

# refused COMMAND REGEX: each time, and the program takes no harm.
refused() {
	local i
	begin "$1" || return
	for ((i = 0; i < restarts; i++)); do
		moment $((restarts + 1))
		if checkpoint; then
			outcome "is NOT refused"
			return
		fi
		grep -qE -- "$2" ckpt.err || return
	done
	ended || return
	! differs out "$1" run.err
}

# either COMMAND REGEX: the same, but the program is not always in a state that can be saved: it is refused then, and
# runs on.
either() {
	same "$1" && echo "same" >outcome && return
	grep -q '^refused: ' outcome && grep -qE -- "$2" outcome || return
	ended || return
	! differs out "$1" run.err && echo "refused, as expected at some moments" >outcome
}

# fails COMMAND REGEX: something is refused at the call already, by name, and natively it is not.
fails() {
	if timeout -k 5 "$limit" \
		trecr-run --gpu=on -d ck sh -c "exec env $1" >out 2>undisturbed.err </dev/null; then
		outcome "does NOT fail under trecr-run"
		return
	fi
	grep -qE -- "$2" undisturbed.err || outcome "FAILS under trecr-run: $(last_of undisturbed.err)"
}

# try COMMAND EXPECTED: all of it; leaves `outcome`.
try() {
	natively "$1" || return
	PANEL_STEPS=$(steps_in expected)
	export PANEL_STEPS
	case $2 in
	fails*)
		fails "$1" "${2#fails: }" && echo "refused at the call, as expected" >outcome
		return
		;;
	esac
	undisturbed "$1" || return
	case $2 in
	same) same "$1" && echo "same" >outcome ;;
	ended) same "$1" end && echo "same" >outcome ;;
	either*) either "$1" "${2#either: }" ;;
	says*)
		grep -qE -- "${2#says: }" undisturbed.err || outcome "does not say: ${2#says: }" || return
		same "$1" && echo "same, and says so" >outcome
		;;
	refused*) refused "$1" "${2#refused: }" && echo "refused, as expected" >outcome ;;
	*) outcome "the table expects what nobody knows: $2" ;;
	esac
}

# Caches of compilers are the row's own: rows run side by side.
row() { # COMMAND EXPECTED NEEDS
	local name
	for name in TMPDIR XDG_CACHE_HOME CUDA_CACHE_PATH TRITON_CACHE_DIR TORCHINDUCTOR_CACHE_DIR \
		CUPY_CACHE_DIR NUMBA_CACHE_DIR MPLCONFIGDIR; do
		mkdir -p "cache/$name"
		export $name="$PWD/cache/$name"
	done
	echo "$1" >program
	try "$1" "$2"
	echo $? >status
	grep -q '^does not work natively' outcome && unusable "$3" && echo skip >status
	[ -z "${sup:-}" ] || fell "$sup" 2>/dev/null
	rm -rf ck cache
}

# importable MODULE: else prints why not. Its packages are imported, it itself is not: that takes seconds.
importable() {
	python3 - "$1" 2>&1 <<-'END' | tail -n 1 | cut -c1-200
		import importlib.util, sys
		name = sys.argv[1]
		try:
		    found = importlib.util.find_spec(name)
		except ModuleNotFoundError as e:
		    found = None if name.startswith(e.name or " ") else print(f"{name}: {e}") or True
		except Exception as e:
		    found = print(f"{name} cannot be imported here: {e}") or True
		if found is None:
		    print(f"no {name} here")
	END
}

onnx_lacks() { # PROVIDER
	python3 -c "import onnxruntime as o, sys
sys.argv[1] in o.get_available_providers() or print('ONNX Runtime has no', sys.argv[1])" "$1" 2>&1 | tail -n 1
}

# lacks NEED,...: prints the first that is not here; fails when all are.
lacks() {
	local need why
	for need in ${1//,/ }; do
		case $need in
		gpus=*)
			why=
			[ "$(nvidia-smi -L | grep -c '^GPU')" -ge "${need#*=}" ] || why="no $need here"
			;;
		onnx=*) why=$(onnx_lacks "${need#*=}") ;;
		lib=*) why=$(python3 -c "from toolkit import library; library('${need#*=}')" 2>&1 | tail -n 1) ;;
		*) why=$(importable "$need") ;;
		esac
		[ -z "$why" ] || {
			echo "$why"
			return
		}
	done
	return 1
}

# unusable NEED,...: what does not work natively is no row where one of its modules cannot be imported; why is the
# outcome.
unusable() {
	local need
	for need in ${1//,/ }; do
		[[ $need = *=* ]] || python3 -c "import $need" >/dev/null 2>import.err && continue
		echo "$need cannot be imported here: $(last_of import.err)" >outcome
		return
	done
	return 1
}

line() {
	printf '%-46s %7s %7s %6s %7s  %s\n' "$@"
}

verdict() { # NAME, in the row's folder
	if [ "$(cat status)" = skip ]; then
		skip "$1" "$(cat outcome)"
	else
		result "$(cat status)" "$1: $(cat outcome)"
	fi
	line "$1" "$(mean native.ms)" "$(mean undisturbed.ms)" "$(mean ckpt.ms)" "$(mean restart.ms)" \
		"$(cat outcome)" >>"$scratch/table"
}

mkdir -p "$logs" && logs=$(cd "$logs" && pwd) || exit 1
export PYTHONPATH=$gpu/panel${PYTHONPATH:+:$PYTHONPATH} PYTHONHASHSEED=0
line program native under ckpt restart "(seconds, outcome)" >"$scratch/table"
names=() folders=()
while IFS='|' read -r name needs expected command; do
	read -r name <<<"$name"
	read -r needs <<<"$needs"
	read -r expected <<<"$expected"
	[[ -n $name && $name != \#* && $name =~ ${ROWS:-.} ]] || continue
	if missing=$(lacks "$needs"); then
		skip "$name" "$missing"
		continue
	fi
	while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-4}" ]; do wait -n; done
	folder=$logs/${name//[^A-Za-z0-9]/-}
	rm -rf "$folder"
	mkdir -p "$folder" || exit 1
	names+=("$name") folders+=("$folder")
	(cd "$folder" && row "${command//@/$gpu/panel}" "$expected" "$needs" 2>shell.err) &
done <"$table"
wait
for ((i = 0; i < ${#names[@]}; i++)); do
	cd "${folders[i]}" && verdict "${names[i]}"
done
cd "$scratch" || exit 1
diag "$(cat table)"
done_testing
