#!/bin/bash
# Programs of others as they are, where they are installed: three times a checkpoint, then the
# program and its supervisor are killed (SIGKILL), and a restart. What they give in the end is what
# an undisturbed run gives.
#
#	make check-applications [PROGRAMS='gromacs ruby ...'] [PLUG=1 [WAYS='--fork ...']]
#
# With PLUG=SEC checkpoints are taken every SEC seconds (--incremental, and what WAYS adds), and the plug is
# pulled at a random time, also while one is being written.
#
# Each file of panel/ is one, in its own language; its first lines say which packages (Debian's)
# and commands it needs, and options of trecr-run. It prints "ready" when it is to be saved, and what comes
# after that is compared. Programs without the word `go` end by themselves; the others work until
# a file of this name is there. Not part of make check, as it takes half an hour.
TEST_LIMIT=${TEST_LIMIT:-36000}
export TEST_LIMIT
. "$(dirname "$0")/../lib.sh"

source=$top/t/application
# The machine's addresses and System V objects are not for us.
[ -n "${TRECR_APART:-}" ] || { am_root && unshare -n -i true 2>/dev/null &&
	cd "$top" && rm -rf "$scratch" &&
	TRECR_APART=1 exec unshare -n -i -- "$BASH" t/application/panel.sh; }
[ -z "${TRECR_APART:-}" ] || loopback_up

# ---- what a program needs, and how it is started ----

header() { # FILE KEY
	sed -nE "1,3s/.*$2: //p" "$1" | sed -E '1s/\. .*//; s/ \*\/.*//; q'
}

there() { # COMMAND, or python3:MODULE
	case $1 in
	python3:*) python3 -c "import ${1#*:}" 2>/dev/null ;;
	/*) [ -e "$1" ] ;;
	*) have "$1" ;;
	esac
}

# Sets command: what runs FILE in the working directory.
prepare() { # FILE
	case $1 in
	*.sh) command=("$BASH" "$1") ;;
	*.py) command=(env "PYTHONPATH=$source" PYTHONDONTWRITEBYTECODE=1 python3 "$1") ;;
	*.m) command=(octave-cli --no-gui -q "$1") ;;
	*.R) command=(Rscript "$1") ;;
	*.js) command=(node "$1") ;;
	*.rb) command=(ruby "$1") ;;
	*.php) command=(php "$1") ;;
	*.lua) command=(lua5.4 "$1") ;;
	*.lisp) command=(sbcl --script "$1") ;;
	*.scm) command=(guile --no-auto-compile -s "$1") ;;
	*.ml) command=(ocaml "$1") ;;
	*.awk) command=(gawk -f "$1") ;;
	*.tcl) command=(tclsh "$1") ;;
	*.pro) command=(swipl "$1") ;;
	*.erl) command=(escript "$1") ;;
	*.exs) command=(elixir "$1") ;;
	*.rkt) command=(racket "$1") ;;
	*.fs) command=(gforth "$1") ;;
	*.cs) mcs -out:../program "$1" && command=(mono "$PWD/../program") ;;
	*.rs) rustc -O -o ../program "$1" && command=("$PWD/../program") ;;
	*.hs)
		cp "$1" ../main.hs && ghc -O -threaded -o ../program ../main.hs &&
			command=("$PWD/../program")
		;;
	*) return 1 ;;
	esac >../prepare.log 2>&1
}

# ---- three crashes ----

# A program that ends by itself gets on between two checkpoints, for an eighth of what it takes.
get_on() {
	[ -z "$share" ] || ! await -t "$share" -p "$sup" 2>>await.err
}

crash() {
	if [ -n "${PLUG:-}" ]; then
		pull_the_plug
	else
		checkpoint && { sweep >/dev/null || true; }
	fi
}

# Some time after the next checkpoint that is complete, or is as good as that.
pull_the_plug() {
	local newest
	newest=$(readlink ck/latest) && newest=$((10#${newest#ckpt-}))
	await_dir "ck/ckpt-$(printf %06d $((${newest:-0} + 1)))" || return
	await -t "$((RANDOM % 3)).$((RANDOM % 10))" -p "$sup" 2>>await.err
	sweep >/dev/null || true
}

same_result() {
	given >../restarted && step="the same result" && diff ../undisturbed ../restarted >>err &&
		step="leaving nothing behind" && sweep 5
}

# A program that is faster than before may have ended by itself after one or two, also at the very moment.
ended_early() {
	[ "$cycle" != 1 ] && await -t 1 -p "$sup" 2>>await.err && note "ended after $((cycle - 1)) of 3 crashes" && same_result
}

crashed_three_times() {
	for cycle in 1 2 3; do
		step="getting on, $cycle"
		get_on && step="checkpoint $cycle" && crash || { ended_early; return; }
		step="restart $cycle"
		if [ $cycle = 3 ]; then restart_here; else restart_detached; fi || return 1
	done
	step="running on" && : >go && await -t 600 -p "$sup" 2>>await.err || return 1
	wait "$sup"
	status=$?
	step="its status" && [ $status = 0 ] && same_result
}

program() { # NAME FILE
	local name=$1 file=$2 share='' began command step="being prepared" cycle
	# A file without that line has no options.
	# shellcheck disable=SC2155
	local RUN_FLAGS="${RUN_FLAGS:-} $(header "$2" Options)"
	arena "$name"
	chmod 711 "$scratch" . && mkdir x && cd x || exit 1
	PORT=$(free_port) PORT2=$(free_port)
	export PORT PORT2
	prepare "$file" && step="an undisturbed run" && began=${EPOCHREALTIME/./} &&
		undisturbed "${command[@]}" && {
		grep -qw go "$file" || share=$(((${EPOCHREALTIME/./} - began) / 8000))
		[ -z "$share" ] || share=$((share / 1000)).$(printf %03d $((share % 1000)))
	} && step=start && launch "${command[@]}" && crashed_three_times
	result $? "$name" || {
		diag "failed at: $step${status:+ (status $status)}"
		explain ../prepare.log
	}
	sweep >/dev/null
	status=
	cd "$scratch" && rm -rf "$arenas.$name"
}

absent=()
try() { # FILE
	local name=${1##*/} need
	name=${name%.*}
	[ -z "${PROGRAMS:-}" ] || [[ " $PROGRAMS " = *" $name "* ]] || return 0
	for need in $(header "$1" Needs | tr ',' ' '); do
		if ! there "$need"; then
			absent+=("$name")
			skip "$name" "not installed: $(header "$1" Packages)"
			return
		fi
	done
	program "$name" "$1"
}

export RESTART_FLAGS=--rollback-files
if [ -n "${PLUG:-}" ]; then
	export RUN_FLAGS="-i $PLUG --incremental --save-files ${WAYS:-}"
	RESTART_FLAGS+=" $RUN_FLAGS"
fi
for file in "$source"/panel/*; do
	try "$file"
done
for name in ${PROGRAMS:-}; do
	compgen -G "$source/panel/$name.*" >/dev/null || result 1 "$name: there is no such program in $source/panel"
done
note "${#absent[@]} of $tests are not installed: ${absent[*]}"
done_testing
all_passed "${#absent[@]}"
