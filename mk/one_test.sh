#!/bin/bash
# one_test.sh DIR TEST - run TEST for prove, and keep what it says on standard error in DIR, for
# failures.sh; it is seen at once all the same.
set -u

kept=$1/${2//\//_}
shift
# Those of t/ do it themselves (t/lib.sh).
nest=()
[[ $1 = *.t ]] || nest=("${1%/t/*}/t/tool/nest" -t "${TEST_LIMIT:-600}")
{
	"${nest[@]}" "$@" 2>&1 >&3 3>&- | tee "$kept" >&2
	status=${PIPESTATUS[0]}
} 3>&1
[ "$status" = 0 ] || echo "# ends with status $status" >>"$kept"
exit "$status"
