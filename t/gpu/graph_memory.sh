#!/bin/bash
# Graphs that allocate memory, on a real GPU: what the driver does with them natively and under trecr-run, side by
# side, and whether a program with such graphs says the same over two restarts. Prints a table last; 150 s at most.
# Ends with 1 where something differs, or did not work.
#
#	t/gpu/graph_memory.sh [BUILD]		BUILD: where trecr was built, else build/
if [ -z "$WITHIN_LIMIT" ]; then WITHIN_LIMIT=1 exec timeout -k 5 145 bash "$0" "$@"; fi
top=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$top/build}" && pwd) || exit
rounds=${ROUNDS:-3000}
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit

table=()
failed=0
row() { # WHAT RESULT
	[[ $2 == "status 0"* && $2 != *DIFFERS* ]] || failed=1
	table+=("$(printf '%-28s %s' "$1" "$2")")
	echo "... ${table[-1]}"
}

# within SECONDS COMMAND...: until it succeeds; fails when the time is over, or the process $pid has ended.
within() {
	local end=$((SECONDS + $1))
	until "${@:2}"; do
		[ $SECONDS -lt $end ] && kill -0 "$pid" 2>/dev/null || return
		perl -e 'select undef, undef, undef, 0.05'
	done
}

has_ended() {
	! kill -0 "$pid" 2>/dev/null
}

# ended SECONDS: the status of $pid; it is killed when the time is over.
ended() {
	within "$1" has_ended
	has_ended || kill -KILL "$pid"
	wait "$pid"
}

says() { # FILE: what is not to differ
	grep -v '^fact' "$1"
}

same() {
	if diff <(says native) <(says "$1") >/dev/null; then echo same; else echo DIFFERS; fi
}

timeout 45 nvcc -I"$top" -std=c++17 -O2 -arch=native -o program "$top/t/gpu/graph_memory.cu" -lcuda || exit

./program "$rounds" >native 2>native.err &
pid=$!
ended 25
row natively "status $?"

"$build/trecr-run" -d undisturbed --gpu=on ./program "$rounds" >under 2>under.err &
pid=$!
ended 25
row "under trecr-run" "status $?, says the $(same under)"

"$build/trecr-run" -d saved --gpu=on ./program "$rounds" >restarted 2>restarted.err &
pid=$!
within 20 grep -qs '^ready' restarted
for n in 1 2; do
	perl -e 'select undef, undef, undef, 0.3'
	timeout 15 "$build/trecr-ckpt" -s $pid >ckpt$n 2>&1
	row "checkpoint $n" "status $?"
	ended 5
	"$build/trecr-restart" -v saved >restart$n 2>&1 </dev/null &
	pid=$!
	within 15 grep -Eqs '^trecr-restart: process [0-9]+ runs' restart$n || failed=1
	perl -e 'select undef, undef, undef, 1'
done
ended 25
row "the last restart ended with" "status $?, says the $(same restarted)"

echo
printf '%s\n' "${table[@]}"
printf '%-28s %s\n' fact "natively, under trecr-run"
while read -r name one two; do
	differs=
	[ "$one" = "$two" ] || { differs="   DIFFERS"; failed=1; }
	printf '%-28s %s\n' "$name" "$one $two$differs"
done < <(join -a 1 -a 2 -o 0,1.2,2.2 -e none <(sed -n 's/^fact //p' native | sort) <(sed -n 's/^fact //p' under | sort))
for f in native.err under.err restarted.err ckpt1 ckpt2 restart1 restart2; do
	[ ! -s $f ] || tail -n 2 $f | sed "s/^/$f: /"
done
exit $failed
