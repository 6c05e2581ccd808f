#!/bin/bash
# Trees of processes: parents and children, what they share, groups and sessions, processes that
# have ended. (In namespaces: tree_namespace.t.)
. "$(dirname "$0")/lib.sh"
. "$top/t/trees.sh"

for v in $tree_victims; do
	cycle "$v"
done
cycle tree_stops pending
for family in $clone_families; do
	cycle tree_clones "$family"
done

# A process that cannot be brought back takes all with it, and is named.
arena whole
launch "$victim/tree_family" && freeze_away
last=$(ls ck/ckpt-000001 | grep -v job | sort -n | tail -n 1)
printf 'broken' | dd of="ck/ckpt-000001/$last" bs=1 seek=4200 conv=notrunc 2>/dev/null
timeout -k 1 60 trecr-restart ck </dev/null >>out 2>restart.err
is $? 125 "a tree with one damaged process is not brought back"
like "$(cat restart.err)" "process $last" "which is named" || explain
leaves_nothing "nothing is left of the others"
is "$(cat out)" ready "and none has run"

# That one has left a core file shows no more where none can be written: root may in any case.
if ! am_root && [ "$(ulimit -Hc)" != 0 ] && ! grep -q '[|@/]' /proc/sys/kernel/core_pattern; then
	arena core
	launch "$victim/tree_zombie" && freeze_away
	ulimit -c 0
	restart_here
	like "$(cat restart.err)" "no longer show that they left a core file" \
		"a core file that shows no more is named" || explain
	sweep >/dev/null
else
	skip "a core file that shows no more is named" "one is written in any case, or never"
fi

# The supervisor's death in the middle of a checkpoint lets all go.
arena deaths
launch "$victim/tree_many"
trecr-ckpt "$sup" >/dev/null 2>&1 &
{
	kill -KILL "$sup"
	wait
} 2>/dev/null
# Others are of tests beside this one.
alive=$(for pid in $(pgrep tree_many); do readlink "/proc/$pid/cwd"; done | grep -cx "$PWD")
like "$alive" '^5[01]$' "all processes outlive the supervisor"
sweep >/dev/null
done_testing
