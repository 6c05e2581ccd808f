#!/bin/bash
# The tests of MPICH, which are not ours to keep: each by itself, under trecr-run with the library in
# the lower half (--mpi=lower), and once more with a checkpoint, SIGKILL and a restart in the middle.
#
#	make check-mpi [FOLDERS='pt2pt coll ...'] [ONLY='NAME ...'] [SUITE=DIRECTORY]
#
# Debian's source package is fetched and built in a directory that goes again, or in SUITE, where it is used
# again. Each has LIMIT seconds (60) or what testlist gives it, and three times as many with a checkpoint. Of what passes natively each line of FOLDER/testlist is one test; says in the end how many of them pass
# in either way, and names each other one with the reason. Not part of make check, as it takes an hour or more.
TEST_LIMIT=${TEST_LIMIT:-36000}
export TEST_LIMIT
. "$(dirname "$0")/../lib.sh"

have mpicc.mpich && have mpiexec.mpich || skip_all "MPICH is not installed"
# With others' restarts ranks are in pid namespaces: doc/decisions/mpi.md.
am_root || skip_all "needs root"
if [ -z "${TRECR_APART:-}" ] && unshare -mn true 2>/dev/null; then
	cd "$top" && rm -rf "$scratch"
	# What is fetched is fetched before, with the machine's network.
	[ -n "${SUITE:-}" ] || made=$(mktemp -d) || exit 1
	export SUITE=${SUITE:-$made}
	# shellcheck disable=SC2086 # they are several
	"$BASH" "$top/t/mpi/fetch.sh" "$SUITE" ${FOLDERS:-} || exit 1
	TRECR_APART=1 unshare -mn -- "$BASH" "$top/t/mpi/suite.sh"
	status=$?
	[ -z "${made:-}" ] || rm -rf "$made"
	exit $status
fi
loopback_up
mount -t tmpfs tmpfs /dev/shm

suite=$(cd "$SUITE"/mpich-*/test/mpi && pwd) || exit 1
limit=${LIMIT:-60}
tests=0 natively=0 run=0 restarted=0 refused=0 failed=0 at_end=0
exceptions=()

# ---- between the program and its library ----

# Each function of MPI tells its name, and goes on in the library's own by its second name.
trampolines() {
	nm -D --defined-only "$(mpicc.mpich -print-file-name=libmpich.so)" |
		sed -n 's/.* [TW] MPI\(X\?_[A-Za-z0-9_]*\)$/MPI\1/p' | while read -r name; do
		echo "	.globl $name
	.type $name, @function
$name:	lea 1f(%rip), %rax
	lea P$name@GOTPCREL(%rip), %r11
	jmp in_between
	.section .rodata
1:	.asciz \"$name\"
	.text"
	done
	echo "in_between:
	push %rdi; push %rsi; push %rdx; push %rcx; push %r8; push %r9; push %r11
	mov %rax, %rdi
	call middle_call@PLT
	pop %r11; pop %r9; pop %r8; pop %rcx; pop %rdx; pop %rsi; pop %rdi
	mov (%r11), %r11
	jmp *%r11
	.section .note.GNU-stack, \"\", @progbits"
}

trampolines >middle.S && gcc -shared -fPIC -O1 -o middle.so middle.S "$top/t/mpi/middle.c" || exit 1
middle=$PWD/middle.so

# ---- one test ----

# Whether it has passed: by its own words, or by its status where it is not to end well.
has_passed() { # STATUS
	case $expected in
	TestStatusNoErrors | TestErrFatal) [ "$1" != 0 ] && [ "$1" != 124 ] ;;
	TestStatus) [ "$1" != 124 ] ;;
	*) [ "$1" = 0 ] && grep -q "No Errors" out ;;
	esac
}

# With what comes between, in a directory of its own: MIDDLE_AT, which call.
launch_ranks() { # CALL PAUSE COMMAND...: in the background
	local call=$1 pause=$2
	shift 2
	(cd "$suite/$folder" && exec timeout -k 5 $((limit * (call ? 3 : 1))) mpiexec.mpich -n "$ranks" "$@" env \
		LD_PRELOAD="$middle" MIDDLE="$here" MIDDLE_AT="$call" MIDDLE_PAUSE="$pause" \
		"${settings[@]}" "./$name" "${arguments[@]}") >>out 2>&1 </dev/null &
	launcher=$!
}

passes() { # COMMAND...
	rm -f out
	launch_ranks 0 0 "$@"
	wait $launcher
	has_passed $?
}

under_trecr() {
	passes "$build/trecr-run" --alone --gpu=off --mpi=lower --
}

# The first lines that say something.
reason() { # FILE...
	grep -hv '^trecr-run: no checkpoint will\|^$' "$@" 2>/dev/null | head -n 3 | cut -c1-200 | tr '\n' ' '
}

# Rank 0 is in the middle of its calls; how long it takes for each, so that a checkpoint finds it there.
in_the_middle() {
	local calls pause
	read -r calls 2>/dev/null <count || calls=2
	pause=$((4000000 / (calls + 2)))
	rm -rf out ck reached saved ending restart.out
	launch_ranks $(((calls + 1) / 2)) $((pause > 200000 ? 200000 : pause)) \
		"$build/trecr-run" -d "$here/ck" --gpu=off --mpi=lower --
	verdict="not begun"
	await -t "$limit" -p $launcher -e reached 2>await.err || return
	verdict=refused
	if ! trecr-ckpt -t "$limit" "$(cat reached)" >path 2>ckpt.err; then
		: >saved
		wait $launcher
		has_passed $? || verdict="refused, and does not go on"
		return 1
	fi
	verdict="not restarted"
	sweep >/dev/null || true
	: >saved
	timeout -k 5 "$limit" mpiexec.mpich -n "$ranks" trecr-restart ck >restart.out 2>&1 </dev/null
	status=$?
	cat restart.out >>out
	has_passed $status
}

except() { # VERDICT REASON
	exceptions+=("$1: $folder/$name${arguments[*]:+ ${arguments[*]}} ($ranks): $2")
	note "${exceptions[-1]}"
}

restarts() {
	if in_the_middle; then
		restarted=$((restarted + 1))
		[ ! -e ending ] || at_end=$((at_end + 1))
	elif [ "$verdict" = refused ]; then
		refused=$((refused + 1))
		except refused "$(reason ckpt.err)"
	else
		failed=$((failed + 1))
		except "$verdict" "$(reason ckpt.err restart.out await.err)"
	fi
}

# A line of testlist: NAME RANKS [WORD=VALUE]...
one() { # FOLDER NAME RANKS WORD...
	local folder=$1 name=$2 ranks=$3 word arguments=() settings=() expected='' here verdict limit=$limit
	shift 3
	for word; do
		case $word in
		arg=*) arguments+=("${word#arg=}") ;;
		env=*) settings+=("${word#env=}") ;;
		resultTest=*) expected=${word#resultTest=} ;;
		timeLimit=*) limit=$((${word#timeLimit=} > limit ? ${word#timeLimit=} : limit)) ;;
		esac
	done
	[ -x "$suite/$folder/$name" ] && [ "$ranks" -le "${RANKS:-8}" ] || return
	[[ -z ${ONLY:-} || " $ONLY " == *" $name "* ]] || return
	arena "$name" && here=$PWD
	tests=$((tests + 1))
	if passes env; then
		natively=$((natively + 1))
		if under_trecr; then
			run=$((run + 1))
			restarts
		else
			except "does not run" "$(reason out)"
		fi
	fi
	sweep >/dev/null || true
	[ -n "${KEEP_SCRATCH:-}" ] || { cd "$scratch" && rm -rf "$here"; }
}

[ -n "${FOLDERS:-}" ] || FOLDERS="pt2pt coll comm datatype group info attr errhan topo util init"
for folder in $FOLDERS; do
	[ -f "$suite/$folder/testlist" ] || continue
	while read -r name ranks words; do
		# shellcheck disable=SC2086 # they are several
		[[ $name == \#* || ! $ranks =~ ^[0-9]+$ ]] || one "$folder" "$name" "$ranks" $words
	done <"$suite/$folder/testlist"
	echo "$folder: $tests tests, natively $natively pass, of these $run under trecr-run," \
		"$restarted over a restart ($at_end of them at their end), $refused refused, $failed failed"
	tests=0 natively=0 run=0 restarted=0 refused=0 failed=0 at_end=0
done
printf '%s\n' "${exceptions[@]}"
