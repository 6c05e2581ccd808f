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

# Rows of the list for the places named, as one pattern each.
rows() {
	awk -F '\t+' -v places=" $* " '!/^#/ && NF >= 3 && index(places, " " $1 " ") {
		print "^" $2 "\t.*(" $3 ")" }' .ci/skips >"$patterns"
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
