#!/bin/sh
# Background jobs with statuses, a coprocess by FIFOs, pipelines under way, traps and a subshell
# with a here-document: for any POSIX shell.
mkfifo ask answer
wait_go() {
	while [ ! -e go ]; do sleep 0.05; done
}

sleep 1000 &
killed=$!
(wait_go; exit 7) &
failing=$!
(trap 'echo "trapped" >trapped; exit 3' TERM; touch trapping; while :; do sleep 0.02; done) &
trapping=$!
while read -r a b; do echo $((a * b)); done <ask >answer &
server=$!
exec 3>ask 4<answer
(seq 1 3000; wait_go; seq 3001 6000) | sed 's/$/ x/' | grep -c x >count &
pipeline=$!
echo 6 7 >&3
read -r product <&4
while [ ! -e trapping ]; do sleep 0.02; done
echo ready
wait $failing
echo "failing $?, product $product"
kill $killed
wait $killed
echo "killed $?"
kill $trapping
wait $trapping
echo "trapping $?, $(cat trapped)"
echo 8 9 >&3
read -r product <&4
exec 3>&-
wait $server
echo "server $?, product $product"
wait $pipeline
echo "pipeline $?, $(cat count) lines"
(
	cat <<END
sum $(seq 1 100 | while read -r n; do sum=$((sum + n)); [ "$n" = 100 ] && echo "$sum"; done)
END
)
rm ask answer
