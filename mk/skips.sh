#!/bin/sh
# skips.sh DIR [PLACE] - tell what the tests skipped, whose output prove has left in DIR
# (PERL_TEST_HARNESS_DUMP_TAP). With a PLACE, fail when .ci/skips does not expect one of them there; with
# +PLACE, only tell, unless it says -PLACE of one.
set -eu

dir=$1 place=${2:-} fails=1
case $place in
+*) place=${place#+} fails=0 ;;
esac

# FILE<tab>NAME # SKIP REASON, or FILE<tab># SKIP REASON for a whole file. FILE is in t/, be it built or not.
skipped=$(cd "$dir" && find . -type f | sort | while read -r file; do
	sed -nE "s|^ok [0-9]+ (- )?(.* # SKIP .*)|${file#./}	\2|p; s|^1\.\.0 (# SKIP .*)|${file#./}	\1|p" \
		"$file"
done | sed 's|^[^	]*/t/|t/|')
[ -n "$skipped" ] || exit 0

echo "Skipped, of $(cd "$dir" && find . -type f -exec cat {} + | grep -cE '^(not )?ok ') tests:"
echo "$skipped" | sed 's/.*# SKIP //' | sort | uniq -c | sort -rn
[ -n "$place" ] || exit 0

patterns=$(mktemp)
trap 'rm -f "$patterns"' EXIT

# Conditions of the list.
lacks() { # FILE
	[ ! -e "$1" ]
}
lacks_flag() { # FLAG: of the processor
	! grep -qw "$1" /proc/cpuinfo
}
kernel_before() { # VERSION
	[ "$(printf '%s\n' "$1" "$(uname -r)" | sort -V | head -n 1)" != "$1" ]
}
# An ordinary user, or a root of a container: without one of the capabilities up to CAP_SYS_ADMIN, or in a user
# namespace.
unprivileged() {
	[ $((0x$(sed -n 's/^CapEff:[^0-9a-f]*//p' /proc/self/status) & 0x3fffff)) != $((0x3fffff)) ] ||
		[ "$(awk '{ print $3; exit }' /proc/self/uid_map)" != 4294967295 ]
}

# Rows of the list for the places named whose condition holds, as one pattern each.
rows() {
	awk -F '\t+' -v places=" $* " '!/^#/ && NF >= 3 && index(places, " " $1 " ") {
		print $2; print $3; print $4 }' .ci/skips |
		while read -r tests && IFS= read -r reasons && read -r condition; do
			if eval "${condition:-true}"; then
				printf '^%s\t.*(%s)\n' "$tests" "$reasons"
			fi
		done >"$patterns"
}

rows "-$place"
never=$(echo "$skipped" | grep -Ef "$patterns" || :)
if [ -n "$never" ]; then
	echo "Never to be skipped here ($place; .ci/skips):"
	echo "$never"
	exit 1
fi
rows "$place" all
unexpected=$(echo "$skipped" | grep -vEf "$patterns" || :)
if [ -n "$unexpected" ]; then
	echo "Not expected to be skipped here ($place; .ci/skips):"
	echo "$unexpected"
	exit $fails
fi
