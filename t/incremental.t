#!/bin/bash
# --incremental: a checkpoint holds what has changed since the one before, and needs that one.
. "$(dirname "$0")/lib.sh"

kilobytes() {
	du -sk "$1" | cut -f1
}
change() { # N: the program changes some pages, for the Nth time
	kill -USR2 "$sup"
	await -t 60 -p "$sup" out "^touched $1\$" >/dev/null
}

arena chain
RUN_FLAGS="--incremental -k 2"
launch "$victim/idle" touch 200 50
for i in 1 2 3 4; do
	checkpoint || explain
	change $i
done
like "$path" "ckpt-000004\$" "four checkpoints of a program that changes"
ok "the first is whole" [ "$(kilobytes ck/ckpt-000001)" -gt 200000 ]
for i in 2 3 4; do
	ok "number $i holds little" [ "$(kilobytes ck/ckpt-00000$i)" -lt 8000 ]
done
ok "-k 2 keeps what a kept one needs" [ -d ck/ckpt-000001 ]
is "$(grep -c ': more than 2 checkpoints are kept, because incremental ones need' ckpt.err)" 1 \
	"and says so, once" || explain
ok "all of it is right" quiet trecr-inspect --verify ck/ckpt-000004
freeze_away || explain
restart_here || explain
finish
is "$status" 0 "restart from a chain" || explain
is "$(grep -v ^touched out)" "ready
ok" "the program is whole"

restart_here --incremental || explain
change 5
checkpoint
ok "a checkpoint after a restart continues the chain" [ "$(kilobytes "$path")" -lt 8000 ]
kill -KILL "$(program_of "$sup")"
await -p "$sup"
IMAGE=$path
restart_here
finish
is "$status" 0 "and can be restarted" || explain
unset IMAGE

# What others need is not pruned; what is missing is named.
trecr-inspect --prune ck/ckpt-000001 >prune.out 2>prune.err
isnt $? 0 "pruning a checkpoint that others need is refused"
like "$(cat prune.err)" "^trecr-inspect: cannot .*ckpt-00000[2-9]" "by the name of one that needs it"
ok "it is still there" [ -d ck/ckpt-000001 ]
mv ck/ckpt-000001 away
timeout -k 1 60 trecr-restart ck </dev/null >restart.out 2>restart.err
is $? 125 "a chain with its first checkpoint missing"
like "$(cat restart.err)" "^trecr-restart: cannot .*ckpt-000001" "is refused by name"
cp -a ck/ckpt-000002 ck/ckpt-000001
timeout -k 1 60 trecr-restart ck </dev/null >restart.out 2>restart.err
is $? 125 "another checkpoint under its name is refused too"
rm -r ck/ckpt-000001
mv away ck/ckpt-000001
ok "with it back all is right" quiet trecr-inspect --verify ck

arena every
RUN_FLAGS="--incremental --full-every 3 -k 2"
launch "$victim/idle" touch 60 5
for i in 1 2 3 4 5 6 7; do
	checkpoint
	[ "$(kilobytes "$path")" -gt 60000 ] && echo full || echo part
	change $i
done >kinds
is "$(xargs <kinds)" "full part part full part part full" "--full-every 3"
not_ok "a chain that nobody needs any more is removed" [ -d ck/ckpt-000001 ]
finish
ok "what is left is right" quiet trecr-inspect --verify ck

# Memory that comes, goes and moves between two checkpoints.
arena moves
RUN_FLAGS=--incremental
for v in anon shared_anon zeroed_file memfd pipes unlinked tree_family tree_shared tree_pipes \
	pty_session sysv; do
	cycle $v
done
remove_awaited
done_testing
