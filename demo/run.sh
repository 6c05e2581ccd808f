#!/bin/bash
# run.sh BUILD - show a checkpoint and a restart of two ordinary programs: one of C with
# threads and files, one of Python. What they produce is compared with an undisturbed run.
# Fails where it differs.
set -eu

build=$(cd "${1:-build}" && pwd)
demo=$(cd "$(dirname "$0")" && pwd)
PATH=$build:$PATH
work=$(mktemp -d)
supervisor=

# What else was open where this was started (by an editor, by make) is not the programs'.
for fd in /proc/$$/fd/*; do
	case ${fd##*/} in
	[012] | 255) ;;
	*) eval "exec ${fd##*/}>&-" ;;
	esac
done

clean_up() {
	[ -z "$supervisor" ] || kill "$supervisor" 2>/dev/null || :
	rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

fail() {
	echo "demo: $*" >&2
	[ ! -s trecr-run.log ] || sed 's/^/demo: trecr-run.log: /' trecr-run.log >&2
	exit 1
}

# Print a command as a user would type it, then run it.
run() {
	echo "\$ $*"
	"$@"
}

# Wait until a line of file $1 matches $2; fails when process $3 ends before.
wait_for_line() {
	tail -n +1 -f --pid="$3" "$1" 2>/dev/null | grep -q -m 1 "$2" || fail "$1 has no line '$2'"
}

# cycle FILE PATTERN COMMAND...: start COMMAND, save and end it once FILE has a line that
# matches PATTERN, bring it back and let it finish. Its output goes to the file out.
cycle() {
	file=$1 pattern=$2
	shift 2
	: >"$file"
	echo "\$ trecr-run -d saved $* >out &"
	trecr-run -d saved "$@" >out 2>trecr-run.log &
	supervisor=$!

	wait_for_line "$file" "$pattern" $supervisor
	program=$(cat "/proc/$supervisor/task/$supervisor/children")
	program=${program% }
	echo "\$ tail -n 1 $file"
	tail -n 1 "$file" | cut -c 1-72
	echo "\$ trecr-ckpt -s $supervisor"
	saved=$(trecr-ckpt -s $supervisor) || fail "there is no checkpoint"
	echo "$saved"
	wait $supervisor || :
	supervisor=
	if run ls -d "/proc/$program" 2>&1; then
		fail "process $program is still there"
	fi
	if grep -q finished out; then
		fail "the program had finished before it was saved"
	fi

	run trecr-restart "$saved" || fail "the restarted program ended with status $?"
	run tail -n 1 out
}

echo "A program of C with four threads, each writing a file of its own."
mkdir "$work/undisturbed" "$work/restarted"
cp "$build/demo/counter" "$demo/pi.py" "$work"
cd "$work/undisturbed"
../counter >out
cd "$work/restarted"
cycle counter-1.txt '^30 ' ../counter
for file in counter-1.txt counter-2.txt counter-3.txt counter-4.txt out; do
	run cmp $file ../undisturbed/$file || fail "$file differs from an undisturbed run's"
done

echo
echo "A program of Python."
rm -rf "$work/undisturbed/"* "$work/restarted/"*
cd "$work/undisturbed"
python3 ../pi.py >out
cd "$work/restarted"
cycle out '^20 ' python3 ../pi.py
run cmp out ../undisturbed/out || fail "out differs from an undisturbed run's"

echo
echo "Both continued where they had been saved; what they wrote is what undisturbed runs wrote."
