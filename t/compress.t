#!/bin/bash
# --compress: an image is smaller, and all that it held comes back; in chains with and without it,
# over restarts, to debuggers, and damaged it is refused.
. "$(dirname "$0")/lib.sh"

kilobytes() {
	du -sk "$1" | cut -f1
}

# ---- each method, twice over a restart ----
for how in lz4 zstd; do
	RUN_FLAGS="--compress=$how" RESTART_FLAGS="--compress=$how"
	for v in text anon mappings tree_family; do
		scenario "$v with $how: restarted twice in a row" twice "$victim/$v"
	done
done
RUN_FLAGS=--compress=zstd:1
scenario "runs on after a compressed checkpoint" once_and_on "$victim/text"
RUN_FLAGS="--compress=lz4 --incremental" RESTART_FLAGS="--compress=zstd --incremental"
scenario "incremental, with lz4 and then zstd" twice "$victim/text"
RESTART_FLAGS=

# ---- how much it holds, and chains ----
arena sizes
RUN_FLAGS="--incremental -k 9"
launch "$victim/text"
for how in none lz4 zstd:1; do
	checkpoint --compress=$how || explain
done
plain=$(kilobytes ck/ckpt-000001)
ok "plain it is large" [ "$plain" -gt 30000 ]
ok "what has not changed is not stored again, whatever the method" \
	[ "$(kilobytes ck/ckpt-000003)" -lt $((plain / 3)) ]
ok "all is right" quiet trecr-inspect --verify ck
freeze_away --compress=lz4 || explain
restart_here || explain
finish
is "$status" 0 "a chain of plain and compressed checkpoints is restarted" || explain

arena smaller
RUN_FLAGS=--compress=lz4
launch "$victim/text"
checkpoint || explain
packed=$(kilobytes "$path")
ok "a compressed image is much smaller" [ "$packed" -lt $((plain * 6 / 10)) ]
pid=$(ls "$path" | grep -v job)
cp -a ck good
freeze_away --compress=none || explain
ok "trecr-ckpt --compress=none makes a plain one" [ "$(kilobytes "$(readlink -f ck/latest)")" -gt 30000 ]

# ---- damage ----
read -r _ first size < <(edit-image "good/ckpt-000001/$pid" layout | grep ^blocks)
wrong=
for part in 0 1 2 3 4 5 6 7 8 9; do
	at=$((first + (size - 1) * part / 9))
	edit-image "good/ckpt-000001/$pid" flip $at
	trecr-inspect --verify good >/dev/null 2>inspect.err && wrong+=" $at"
	[ $((part % 3)) != 0 ] || {
		timeout -k 1 60 trecr-restart good </dev/null >restart.out 2>restart.err
		[ $? = 125 ] && [[ $(cat restart.err) =~ ckpt-000001/$pid:\ the\ block\ at\ .*\(checksum\) ]] && sweep 60 ||
			wrong+=" $at: $(tail -n 1 restart.err)"
	}
	edit-image "good/ckpt-000001/$pid" flip $at
done
is "$wrong" "" "no damaged block gets into a program"
IMAGE=good
restart_here && finish
is "$status" 0 "whole again it runs" || explain
unset IMAGE

# ---- debuggers ----
arena core
RUN_FLAGS=--compress=zstd
launch "$victim/debug"
checkpoint || explain
ok "a plain core of a compressed image" quiet trecr-inspect --core plain "$path"
if have gdb; then
	like "$(gdb -batch -nx "$victim/debug" plain -ex bt -ex 'frame function innermost' -ex 'print heap' 2>&1)" \
		'innermost \(argument=(argument@entry=)?123.*a text on the heap' "gdb reads it"
else
	skip "gdb reads it" "not installed"
fi
finish

# ---- what is not understood ----
arena wrong
trecr-run --compress=gzip true 2>err
is $? 125 "an unknown method is refused"
like "$(cat err)" "lz4, zstd\[:LEVEL\] or none" "with those that there are"
done_testing
