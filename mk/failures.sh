#!/bin/bash
# failures.sh TAP ERRORS - says why tests have failed, behind prove's summary, as often only the
# last lines of a log are shown. TAP is what prove has left (PERL_TEST_HARNESS_DUMP_TAP), ERRORS
# what one_test.sh has.
set -u

tap=$1 errors=$2
files=2 lines=10 # in all no more than 30

# Tests are named as prove was told to run them; tests in the build folder with the whole path.
kept() {
	local name=${1//\//_}
	[ -e "$errors/$name" ] && echo "$errors/$name" || echo "$errors/_$name"
}

# Results that are failures, and whether all were there that were planned.
failures() {
	awk '/^1\.\.[0-9]/ { planned = 1; plan = substr($1, 4) }
		/^(not )?ok / { done++ }
		/^not ok / && !/# [T]ODO / { print }
		END { if (!planned || plan != done + 0) print "# " done + 0 " of " \
			(planned ? plan : "an unknown number of") " tests were done" }' "$1"
}

(cd "$tap" && find . -type f | sort | sed 's|^\./*||') | {
	count=0
	while read -r test; do
		why=$(failures "$tap/$test")
		[ -n "$why" ] || grep -qs '^# ends with status' "$(kept "$test")" || continue
		count=$((count + 1))
		[ $count -le $files ] || continue
		printf '%s:\n' "$test"
		printf '%s' "${why:+$why
}" | head -n 2
		head -n $lines "$(kept "$test")" | cut -c1-400
	done
	[ $count -le $files ] || echo "and $((count - files)) tests more"
}
