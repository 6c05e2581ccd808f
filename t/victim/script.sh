#!/bin/sh
# A shell script as a victim. Waits in `read` from a FIFO that it holds open itself, so that
# the trap for SIGUSR1 runs without a second process.
go=
trap 'go=1' USR1
list="one two three"
mkfifo hold
exec 3<>hold
echo ready
while [ -z "$go" ]; do
	read -r line <&3
done
[ -n "$VICTIM_HURT" ] && list=
n=0
for i in $list; do n=$((n + 1)); done
[ $n = 3 ] && [ "$list" = "one two three" ] && [ $((n * 7)) = 21 ] || {
	echo "differs: $n $list"
	exit 1
}
echo ok
