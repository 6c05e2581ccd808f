#!/bin/sh
# skips.sh DIR [PLACE] - tell what the tests skipped, whose output prove has left in DIR
# (PERL_TEST_HARNESS_DUMP_TAP). With a PLACE, fail when .ci/skips does not expect one of them there; with
# +PLACE, only tell.
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

# Rows of the list that hold here, as one pattern each.
expected=$(mktemp)
trap 'rm -f "$expected"' EXIT
awk -F '\t+' -v place="$place" '!/^#/ && NF >= 3 && ($1 == place || $1 == "all") {
	print "^" $2 "\t.*(" $3 ")" }' .ci/skips >"$expected"
unexpected=$(echo "$skipped" | grep -vEf "$expected" || :)
if [ -n "$unexpected" ]; then
	echo "Not expected to be skipped here ($place; .ci/skips):"
	echo "$unexpected"
	exit $fails
fi
