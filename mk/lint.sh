#!/bin/sh
# lint.sh - form, static checks, headers on their own, and what we do not do. Run in the top
# folder. Every check runs; the exit status says whether one found something.
set -u

code='lib ckpt supervisor shared loader opener bringup devmem tools stubs lower'
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# Also in a subshell, as a part of a pipe is.
finding() {
	echo "lint: $*" >&2
	: >"$out/found"
}

need() {
	if ! command -v "$1" >/dev/null; then
		finding "$1 is not installed"
		exit 1
	fi
}

# Existing files below the folders $1 with names like $2.
files() {
	for folder in $1; do
		[ ! -d "$folder" ] || find "$folder" -type f -name "$2"
	done | sort
}

# Files of the given folders whose first line names an interpreter that ends in $2.
scripts() {
	for folder in $1; do
		find "$folder" \( -name .git -o -name 'build*' \) -prune -o -type f -perm -u+x -print
	done | sort | while read -r file; do
		if head -c 64 "$file" | head -n 1 | grep -aqE "^#!.*[/ ]($2)( |\$)"; then
			echo "$file"
		fi
	done
}

# Nothing in the files named on standard input may match $2; $1 says why.
never() {
	hits=$(xargs grep -nE -- "$2" /dev/null)
	if [ -n "$hits" ]; then
		finding "$1:"
		printf '%s\n' "$hits" >&2
	fi
}

check_executable() {
	for file in $(files t '*.t'); do
		[ -x "$file" ] || finding "$file is not executable"
	done
}

check_format() {
	need clang-format
	# Many files a time: starting it takes longer than a file does.
	for file in $(files "$code t bench demo" '*.[ch]' |
		xargs -n 32 -P "$(nproc)" clang-format --dry-run -Werror 2>&1 |
		sed -nE 's/^([^ :]+):[0-9]+:[0-9]+: error: .*/\1/p' | sort -u); do
		finding "$file is not as clang-format writes it (make format)"
	done
}

# What is wrong rather than a matter of taste. Tests' victims are not checked: some do on
# purpose what one should not. Suppressed are errors of cppcheck's description of POSIX (mmap's
# -1; readdir is thread-safe in glibc; the number of a closed descriptor is still a number),
# that malloc may fail in small programs, leaks of descriptors, as cppcheck does not know of
# cleanup_fd, and the size of what lies between two symbols.
check_static() {
	need cppcheck
	# shellcheck disable=SC2046,SC2086
	cppcheck --quiet --error-exitcode=1 --inline-suppr -j 2 --std=c11 --platform=unix64 \
		--enable=warning,performance,portability --library=posix \
		--suppress=missingIncludeSystem --suppress=invalidFunctionArg \
		--suppress=readdirCalled --suppress=resourceLeak --suppress=nullPointerOutOfMemory \
		--suppress=deallocret --suppress=comparePointers \
		-I. -D_GNU_SOURCE -D__x86_64__ -D__linux__ -D__cppcheck__ \
		$(for d in $code bench demo; do [ ! -d $d ] || echo $d; done) ||
		finding "cppcheck: see above"
}

check_headers() {
	need gcc
	# shellcheck disable=SC2016 # for the other shell
	files "$code t bench demo" '*.h' | xargs -n 1 -P "$(nproc)" sh -c '
		libc=
		case $0 in
		loader/* | opener/* | bringup/*) libc=-ffreestanding ;;
		esac
		gcc -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Werror -Wno-unused-function \
			$libc -I. -D_GNU_SOURCE -DTRECR_VERSION="\"\"" -fsyntax-only -x c \
			-include "$0" /dev/null || { echo "lint: $0 does not compile on its own" >&2; exit 1; }' ||
		finding "headers: see above"
}

check_scripts() {
	for script in $(scripts . 'sh|dash'); do
		sh -n "$script" || finding "$script: see above"
	done
	for script in $(scripts . bash) $(files t '*.sh'); do
		bash -n "$script" || finding "$script: see above"
	done
	{ scripts . 'python3'; files . '*.py'; } | sort -u |
		xargs python3 -c 'import sys; [compile(open(f).read(), f, "exec") for f in sys.argv[1:]]' ||
		finding "scripts of Python: see above"
	# Excluded: what it cannot know of a script that includes another, and its care for names
	# with spaces where the tests themselves chose the names.
	if command -v shellcheck >/dev/null; then
		{ scripts . 'sh|dash|bash'; files t '*.sh'; } | sort -u |
			xargs -r -n 8 -P "$(nproc)" shellcheck -S warning \
				-e SC1007,SC2010,SC2011,SC2034,SC2120,SC2154 ||
			finding "shellcheck: see above"
	fi
}

check_layers() {
	need python3
	mk/layers.py check || finding "folders: see above"
}

# A function that is no part of an interface is not in one.
check_own_functions() {
	# shellcheck disable=SC2086
	mk/own_functions.py $code || finding "functions: see above"
}

# What a header declares is defined in its folder.
check_declared_functions() {
	# shellcheck disable=SC2086
	mk/declared_functions.py $code || finding "headers: see above"
}

# A victim that no test starts proves nothing.
check_victims() {
	mk/victims.py || finding "victims: see above"
}

# A test that is skipped for a reason that nobody knows proves nothing.
check_skip_reasons() {
	mk/skip_reasons.py || finding "reasons for skipping tests: see above"
}

# Files that documents and comments send a reader to.
check_file_names() {
	mk/file_names.py || finding "names of files: see above"
}

# Of the files of one program.
check_unique_names() {
	mk/unique_names.py || finding "names of files: see above"
}

# What was compiled elsewhere is of the sources that are here.
check_kernel() {
	digest=$(cat lower/cuda/hash_kernel.cu lower/cuda/hash_keys.h | sha256sum | cut -d' ' -f1)
	grep -q "SHA-256 $digest\$" lower/cuda/hash_kernel.ptx ||
		finding "lower/cuda/hash_kernel.ptx is of other sources (mk/hash-kernel)"
}

says_what_it_holds() {
	[ -e "$1" ] && [ "$(head -c 2 "$1")" = '/*' ]
}

# The first lines of a header: its name, and in words what it holds.
says_its_name() {
	head -n 4 "$1" | tr -d '\n' | grep -qE "^/[*][ *]*([a-z0-9_]+/)*${1##*/} - [A-Za-z<0-9].{12}"
}

check_habits() {
	all="$code t bench demo mk man doc"

	# In tests, TODO is a word of TAP.
	{ files "$all" '*'; ls Makefile README.md .ci/run; } 2>/dev/null |
		grep -vE '^(mk/lint\.sh|t/.*)$' | never 'left for later' '\b(TODO|FIXME|XXX)\b'
	files t '*.[ch]' | never 'left for later' '\b(TODO|FIXME|XXX)\b'
	files "$code t bench" '*.[ch]' | never 'a comment that a formatter has broken' '^ \*[A-Za-z]'
	{ files "$all" '*'; ls Makefile README.md .ci/run; } 2>/dev/null |
		never 'a path of this machine' "$(pwd | sed 's/[][\.*^$+?(){}|]/\\&/g')\\b|/home/[a-z]"
	# A victim, or a program that is to be saved, may sleep: that is then what is checkpointed.
	{ files "$code demo" '*.[ch]'; files t '*.[ch]' | grep -v '^t/victim/'; } |
		never 'wait for the event, not for some time' '\b(u?sleep) ?\('
	files t '*' | grep -vE '^t/(victim|application)/' |
		never 'wait for the event, not for some time' '^[^#]*time\.sleep\(|^[ 	]*sleep [0-9.]+$'
	files "$code" '*.[ch]' | grep -v '^supervisor/target/tracee\.c$' |
		never 'ptrace outside of supervisor/target/tracee.c' '\bptrace\([^0-9)]'
	files "$code" '*.[ch]' |
		never 'no bounds, or no errors' \
			'\b(strcpy|strcat|v?sprintf|gets|strtok|alloca|mktemp|tmpnam|system)\('
	files 'lib ckpt supervisor' '*.[ch]' |
		grep -vE '^(lib/(err|opts|util)|supervisor/start/supervisor_messages)\.c$' |
		never 'only tools print and exit' '\b(printf|puts|perror|exit)\(|\bf(printf|puts)\(stderr'
	files 'lib ckpt supervisor tools' '*.[ch]' |
		never 'outside of a target a function fails with -1, and errno or a struct err' \
			'return (-?errno|-E[A-Z]+);'
	files 'loader bringup' '*.c' | never 'there is no libc in the loader' \
		'^#include <(stdio|stdlib|unistd|pthread|errno|fcntl)\.h>'
	for file in $(files "$code t bench demo" '*.[chS]'); do
		says_what_it_holds "$file" || says_what_it_holds "${file%.?}.h" ||
			finding "$file does not say at its head what it holds, nor does its header"
	done
	for file in $(files "$code t bench demo" '*.h'); do
		says_its_name "$file" ||
			finding "$file does not begin with a comment \"${file##*/} - what it holds\""
	done
	for file in $(files "$code" '*.[chS]'); do
		[ "$(wc -l <"$file")" -le 900 ] || finding "$file is longer than 900 lines: split it"
	done
}

checks='executable format static headers scripts layers own_functions declared_functions victims skip_reasons
	file_names unique_names kernel habits'
# Side by side; what each says, one after the other.
for check in $checks; do
	("check_$check") >"$out/$check" 2>&1 &
done
wait
for check in $checks; do
	cat "$out/$check" >&2
done
[ ! -e "$out/found" ] || exit 1
echo "lint: nothing found"
