#!/bin/bash
# MPICH's own tests, each by itself and with the library in the lower half (trecr-run --mpi=lower):
# which tests that pass natively pass so, too. Not part of the tests: it takes half an hour or
# more, and the tests are not ours to keep. Debian's source package is fetched into a folder that
# goes again, or is $SUITE, where it is used again.
#
#	t/mpich_suite.sh [FOLDER-OF-TESTS]...		attr, coll, comm ...; default: all of C
#
# Prints the names of tests that fail in the lower half only, and in the end how many there were.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
run=${TRECR_BUILD:-$top/build}/trecr-run
made=
[ -n "${SUITE:-}" ] || made=$(mktemp -d) || exit 1
suite=${SUITE:-$made}
trap '[ -z "$made" ] || rm -rf "$made"' EXIT

fetch() {
	local apt=(-o "Dir::Etc::sourcelist=$suite/sources" -o Dir::Etc::sourceparts=-
		-o "Dir::State::lists=$suite/lists" -o "Dir::Cache=$suite/cache")

	mkdir -p "$suite/lists/partial" "$suite/cache/archives/partial" && cd "$suite" || return 1
	# shellcheck disable=SC1091
	(. /etc/os-release && echo "deb-src http://deb.debian.org/debian $VERSION_CODENAME main") \
		>sources
	apt-get "${apt[@]}" -qq update && apt-get "${apt[@]}" -qq --download-only source mpich &&
		tar xf mpich_*.orig.tar.* --wildcards '*/test/mpi/*'
}

build() {
	cd "$suite"/mpich-*/test/mpi || return 1
	[ -e Makefile ] || ./configure --disable-fortran --disable-cxx --with-mpi=/usr \
		CC=mpicc.mpich MPICC=mpicc.mpich >configure.out 2>&1 || return 1
	make -k -j2 >make.out 2>&1 || : # a few are for features that the package lacks
}

# Whether the program passes: by its own words, or by its status where it is not to end well.
passes() { # EXPECTED RANKS PROGRAM-AND-ARGUMENTS...
	local expected=$1 ranks=$2 out status
	shift 2
	out=$(timeout "${LIMIT:-60}" mpiexec.mpich -n "$ranks" "$@" 2>&1 </dev/null)
	status=$?
	case $expected in
	TestStatusNoErrors | TestErrFatal) [ $status != 0 ] && [ $status != 124 ] ;;
	TestStatus) [ $status != 124 ] ;;
	*) [ $status = 0 ] && [[ $out == *"No Errors"* ]] ;;
	esac
}

# A line of testlist: NAME RANKS [WORD=VALUE]...
one() { # FOLDER NAME RANKS WORD...
	local folder=$1 name=$2 ranks=$3 word arguments=() settings=() expected=
	shift 3
	for word; do
		case $word in
		arg=*) arguments+=("${word#arg=}") ;;
		env=*) settings+=("${word#env=}") ;;
		resultTest=*) expected=${word#resultTest=} ;;
		mpiversion=* | strict=* | timeLimit=* | xfail=* | mpixalltests=*) ;;
		esac
	done
	[ -x "$name" ] || return
	if [ "$ranks" -gt 8 ] || ! passes "$expected" "$ranks" \
		env "${settings[@]}" "./$name" "${arguments[@]}"; then
		natively_not=$((natively_not + 1))
	elif passes "$expected" "$ranks" env "${settings[@]}" "$run" --alone --gpu=off --mpi=lower -- \
		"./$name" "${arguments[@]}"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "$folder/$name ($ranks ranks) ${arguments[*]} fails"
	fi
}

[ -d "$(echo "$suite"/mpich-*/test/mpi)" ] || fetch || exit 1
build || exit 1
[ $# -gt 0 ] || set -- attr basic coll comm datatype errhan group info init io part pt2pt rma \
	threads/* topo util
passed=0 failed=0 natively_not=0
all=$PWD
for folder; do
	cd "$all/$folder" 2>/dev/null && [ -f testlist ] || continue
	while read -r name ranks words; do
		# shellcheck disable=SC2086 # they are several
		[[ $name == \#* || ! $ranks =~ ^[0-9]+$ ]] || one "$folder" "$name" "$ranks" $words
	done <testlist
	echo "$folder: so far $passed pass, $failed fail, $natively_not do not pass natively"
done
