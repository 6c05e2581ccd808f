#!/bin/bash
# --dirty=uffd: a page that the kernel says has not been written to is as the checkpoint before has it.
. "$(dirname "$0")/lib.sh"

# Pages that are taken for unchanged are looked at all the same, and a checkpoint fails if one is not.
export TRECR_TEST_CHECK_CLEAN=1

# uffds PID: descriptors that PID has
uffds() {
	find "/proc/$1/fd" -lname 'anon_inode:\[userfaultfd\]' | wc -l
}
watched() {
	grep -c '^VmFlags:.* uw' "/proc/$(program_of "$sup")/smaps"
}

# damage_hashes CHECKPOINT: a bit in the midst of the hashes of its only process
damage_hashes() {
	local file at size
	file=$(find "$1" -regex '.*/[0-9]+' | head -1)
	# struct image_parts, at byte 256 (trecr-image(5))
	read -r at size <<<"$(od -An -tu8 -j256 -N16 "$file" | xargs)"
	((size > 0)) || return 1
	edit-image "$file" flip $((at + size / 2))
}

# ---- whatever is done to memory ----
arena all
RUN_FLAGS="--incremental --dirty=uffd"
launch "$victim/dirtying" $RANDOM || explain
before=$(watched)
is "$before" 0 "before the first checkpoint nothing is watched"
checkpoint || explain
if [ "$(watched)" = 0 ]; then
	skip "unchanged pages" "this kernel does not show them"
else
	isnt "$(uffds "$sup")" 0 "behind it memory is watched by the supervisor"
	is "$(uffds "$(program_of "$sup")")" 0 "and the program has no descriptor of that"
	wrong=
	for ((i = 0; i < ${DIRTY_CHECKPOINTS:-15}; i++)); do
		checkpoint || wrong+=" $i"
	done
	is "$wrong" "" "no page is taken for unchanged that has changed" || explain
	ok "the last is right" quiet trecr-inspect --verify ck
fi
freeze_away || explain
restart_here --incremental --dirty=uffd || explain
ok "after a restart" checkpoint
ok "and once more" checkpoint
finish
is "$status" 0 "the program is whole" || explain

# ---- every way to find out what has changed, with all that can be done beside it, twice over a restart ----
for how in hash uffd; do
	arena "$how"
	RUN_FLAGS="--incremental --dirty=$how --fork --compress=lz4"
	wrong=
	launch "$victim/dirtying" $RANDOM || wrong=start
	for life in 1 2; do
		for ((i = 0; i < ${DIRTY_CHECKPOINTS:-5}; i++)); do
			[ -n "$wrong" ] || checkpoint --fork || wrong="checkpoint $i of life $life"
		done
		[ -n "$wrong" ] || quiet trecr-inspect --verify ck || wrong="the image of life $life"
		[ -n "$wrong" ] || freeze_away || wrong="the last checkpoint of life $life"
		[ -n "$wrong" ] || restart_here || wrong="restart $life"
	done
	[ -n "$wrong" ] || { finish && [ "$status" = 0 ]; } || wrong="what it finds in its memory"
	is "$wrong" "" "--incremental --dirty=$how --fork --compress, twice over a restart" || explain
done

# ---- what is not read is in the image ----
arena unread
RUN_FLAGS="--incremental --dirty=uffd"
unset TRECR_TEST_CHECK_CLEAN
launch "$victim/idle" touch 64 50
for i in 1 2 3; do
	checkpoint --compress=lz4 || explain
	kill -USR2 "$sup"
	await -t 60 -p "$sup" out "^touched $i\$" >/dev/null
done
ok "an incremental checkpoint is small" [ "$(du -sk "$path" | cut -f1)" -lt 8000 ]
ok "and right" quiet trecr-inspect --verify ck
freeze_away || explain
restart_here && finish
is "$status" 0 "and whole, without having been read" || explain

# ---- hashes that are referred to without having been read ----
arena damaged
RUN_FLAGS="--incremental --dirty=uffd"
launch "$victim/idle" touch 64 50
checkpoint || explain
first=$path
damage_hashes "$first"
kill -USR2 "$sup"
await -t 60 -p "$sup" out "^touched 1\$" >/dev/null
not_ok "the first checkpoint's hashes are damaged" quiet trecr-inspect --verify "$first"
ok "there is a next checkpoint" checkpoint || explain
isnt "$path" "$first" "which is another one"
ok "it needs none of them" quiet trecr-inspect --verify "$path" || explain
ok "it is a full one" [ "$(du -sk "$path" | cut -f1)" -gt 64000 ]
kill -USR2 "$sup"
await -t 60 -p "$sup" out "^touched 2\$" >/dev/null
checkpoint || explain
ok "the one behind it is small" [ "$(du -sk "$path" | cut -f1)" -lt 8000 ]
ok "and right" quiet trecr-inspect --verify "$path"
freeze_away || explain
restart_here && finish
is "$status" 0 "and can be restarted" || explain
export TRECR_TEST_CHECK_CLEAN=1

# ---- a checkpoint that has failed is nothing to compare with ----
arena failed
faults fault
trecr-run() {
	exec env LD_PRELOAD="$build/t/fault.so" TRECR_FAULT="$PWD/fault" "$build/trecr-run" "$@"
}
launch "$victim/idle" touch 16 500
unset -f trecr-run
checkpoint || explain
for i in 1 2 3; do
	kill -USR2 "$sup"
	await -t 60 -p "$sup" out "^touched $i\$" >/dev/null
	faults fault sync $i commit # when the pages have been protected again
	not_ok "checkpoint $i fails" checkpoint
	faults fault off
	ok "the next one is right" checkpoint || explain
done
freeze_away || explain
restart_here && finish
is "$status" 0 "and whole" || explain

# ---- what is left to hashes ----
RESTART_FLAGS=$RUN_FLAGS
for v in aio tree_shared tree_family shared_anon; do
	scenario "$v: restarted twice in a row" twice "$victim/$v"
done
RESTART_FLAGS=

arena wrong
trecr-run --dirty=soft true 2>err
is $? 125 "an unknown way is refused"
like "$(cat err)" "must be hash or uffd" "with those that there are"
done_testing
