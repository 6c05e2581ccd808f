#!/bin/bash
# A damaged or foreign image is refused with a message, whatever is wrong with it, and never
# half restarted.
. "$(dirname "$0")/lib.sh"

arena good
launch "$victim/program"
freeze_away || explain
pid=$(ls "$path" | grep -v job)
cp -a ck good
# fresh FILE: a new copy of the image, of which FILE is to be changed
fresh() {
	rm -rf ck
	cp -a good ck
	bad=ck/ckpt-000001/$1
}
# edit WHAT [VALUE]: change the file of the last fresh
edit() {
	edit-image "$bad" "$@" || ok "edit-image $*" false
}
# refused NAME REGEX: restart says no, with the reason, and starts nothing
refused() {
	# Were it to succeed, the program would wait for ever.
	timeout -k 1 60 trecr-restart ck </dev/null >restart.out 2>restart.err
	local status=$?
	if [ $status = 125 ] && [[ $(cat restart.err) =~ ^trecr-restart:\ .*($2) ]] &&
		! [ -s restart.out ] && sweep 60; then
		result 0 "$1"
		# The last line is the error; notices may stand before it.
		tail -n 1 restart.err | grep -vE '^trecr-restart: cannot .+: .+' >>"$scratch/form"
	else
		result 1 "$1"
		diag "status $status, wanted a message with '$2'"
		explain
	fi
}
ok "the image is good" quiet trecr-inspect --verify ck

# ---- sealed, so that only the value is wrong ----
for f in job "$pid"; do
	fresh $f; edit seal
	ok "edit-image itself does no harm ($f)" quiet trecr-inspect --verify ck
	fresh $f; edit version 999
	refused "$f of another version" "version"
	fresh $f; edit machine 183
	refused "$f of another machine" "machine|architecture|x86-64"
	fresh $f; edit incompat 0x80000000
	refused "$f with an unknown feature" "feature|newer"
	fresh $f; edit compat 0x80000000
	ok "an unknown compatible feature of $f does no harm" quiet trecr-inspect --verify ck
	fresh $f; edit block-size 8192
	refused "$f with another block size" "block"
	fresh $f; edit id
	refused "$f of another checkpoint" "checkpoint|belong|chain"
	fresh $f; edit file-kind 7
	refused "$f of an unknown kind" "kind|file"
done
fresh job; edit cpuid
refused "a processor that lacks what the program may use" "CPU|processor"
fresh "$pid"; edit pid
refused "the file of another process" "it is of process"
fresh "$pid"; edit build-id
refused "a program that is not the one that was saved" "build"

# ---- the world has changed ----
fresh job; rm "$bad"
refused "the job file is missing" "job"
fresh "$pid"; rm "$bad"
refused "a process's file is missing" "$pid"
fresh "$pid"; chmod g+w "$bad"
refused "a file that the group may write" "writ|permission|others"
fresh job; chmod o+w ck/ckpt-000001
refused "a directory that others may write" "writ|permission|others"
fresh job; rm ck/latest
refused "no latest" "latest|neither a checkpoint"
fresh job; ln -sfn /etc ck/latest
refused "latest that leads out" "latest|/etc|job|writ|checkpoint"
fresh job; : >"$bad"
refused "an empty file" "job|short|small|ELF|image"
fresh job; rm "$bad"; mkfifo -m 600 "$bad"
timeout 60 trecr-restart ck </dev/null >restart.out 2>restart.err
is $? 125 "a FIFO in place of a file does not hang it" || explain
fresh job; cp "$BASH" "$bad"; chmod 600 "$bad"
refused "any other ELF file" "job|image"

# ---- truncated at the end of every part ----
for f in job "$pid"; do
	edit-image "good/ckpt-000001/$f" layout >layout
	size=$(stat -c %s "good/ckpt-000001/$f")
	wrong=
	n=0
	while read -r name offset length; do
		for at in "$offset" $((offset + length / 2)) $((offset + length - 1)); do
			[ "$at" -lt "$size" ] || continue
			fresh $f
			truncate -s "$at" "$bad"
			n=$((n + 1))
			trecr-inspect --verify ck >inspect.out 2>inspect.err && wrong+=" $name:$at"
			[[ $(cat inspect.err) =~ ^trecr-inspect:\ cannot\ .+:\ .+ ]] || wrong+=" $name:$at(message)"
		done
	done <layout
	is "$wrong" "" "$f truncated in every part ($n places)" || explain inspect.err
	ok "that were enough places" [ $n -gt 20 ]
	fresh $f
	truncate -s $((size / 2)) "$bad"
	refused "$f cut in half does not restart" "."
done

# ---- single bits, all over ----
for f in job "$pid"; do
	size=$(edit-image "good/ckpt-000001/$f" layout | awk '$1 == "meta" {print $2 + $3}')
	wrong=
	n=0
	{
		seq 0 7 183 # the ELF header and the super block
		edit-image "good/ckpt-000001/$f" layout | awk '$3 {print $2; print $2 + $3 - 1; print $2 + int($3 / 3)}'
		for ((i = 0; i < 60; i++)); do echo $(((RANDOM * 32768 + RANDOM) % size)); done
	} | sort -nu >offsets
	fresh $f
	while read -r at; do
		edit-image "$bad" flip "$at"
		n=$((n + 1))
		if trecr-inspect --verify ck >/dev/null 2>inspect.err; then
			wrong+=" $at"
		elif ! [[ $(cat inspect.err) =~ ^trecr-inspect:\ cannot\ .+:\ .+ ]]; then
			wrong+=" $at($(head -c 100 inspect.err))"
		fi
		edit-image "$bad" flip "$at"
	done <offsets
	[ $f = job ] || ok "the zeros that a debugger reads are among them" \
		awk -v "end=$size" '$1 >= end {n++} END {exit !n}' offsets
	is "$wrong" "" "$f with one bit flipped is found out ($n places)"
	ok "and was whole again after each" quiet trecr-inspect --verify ck
	ok "that were enough places" [ $n -gt 80 ]
done
# A block that is wrong is found at a plain restart too, and the program does not run on it.
fresh "$pid"; edit-image "$bad" flip 4100
refused "a wrong block, without --verify" "hash|checksum|damaged|corrupt"

# "daemon & exec trecr-restart": a restart that fails does not wait for children of the shell.
"$BASH" -c 'sleep 300 & echo $! >daemon; exec trecr-restart ck' </dev/null >fails.out 2>fails.err &
failing=$!
ok "it fails at once where the shell has left it a child" await -t 60 -p $failing
wait $failing
is $? 125 "with its own status" || diag "$(cat fails.err)"
ok "and leaves the child alone" kill "$(cat daemon)"
fresh "$pid"; edit-image "$bad" flip 4100
timeout -k 1 60 trecr-restart --verify ck </dev/null >restart.out 2>restart.err
is $? 125 "a wrong block, with --verify" || explain

# What the loader has read into memory is what is compared, by each of its threads.
arena filled
RUN_FLAGS=--incremental
launch "$victim/anon" && checkpoint && freeze_away || explain
RUN_FLAGS=
is "$(basename "$(readlink -f ck/latest)")" ckpt-000002 "a program with more memory is saved twice"
pid=$(ls ck/ckpt-000001 | grep -v job)
read -r _ first size < <(edit-image "ck/ckpt-000001/$pid" layout | grep ^blocks)
wrong=
for at in $first $((first + size - 1)) $((first + size / 5)) $((first + size / 2)) $((first + size * 4 / 5)); do
	edit-image "ck/ckpt-000001/$pid" flip "$at"
	timeout -k 1 60 trecr-restart ck/ckpt-000001 </dev/null >restart.out 2>restart.err
	[ $? = 125 ] && [[ $(cat restart.err) =~ ckpt-000001/$pid:\ the\ block\ at\ .*\(checksum\) ]] && sweep 60 ||
		wrong+=" $at: $(tail -n 1 restart.err)"
	edit-image "ck/ckpt-000001/$pid" flip "$at"
done
is "$wrong" "" "no block that is damaged reaches a program, wherever it lies"
edit-image "ck/ckpt-000001/$pid" flip $((first + size / 2))
timeout -k 1 60 trecr-restart ck </dev/null >restart.out 2>restart.err
is $? 125 "nor one in the checkpoint that an incremental one was made from" || explain
like "$(cat restart.err)" "ckpt-000001/$pid: the block at .*checksum" "which is named"
edit-image "ck/ckpt-000001/$pid" flip $((first + size / 2))
restart_here && finish
is "$status" 0 "and whole again, it runs" || explain

# ---- a library that has been replaced ----
arena library
cp "$victim/plugin.so" .
launch "$victim/plugins" ./plugin.so && freeze_away || explain
cp -a plugin.so was.so
have cc && cc -shared -fPIC -O2 -Wl,--build-id -o new.so "$top/t/victim/plugin/plugin.c" -DOTHER -g &&
	mv new.so plugin.so
if cmp -s plugin.so was.so || ! have cc; then
	skip "a library that was replaced" "no other build of it"
else
	refused "a library that was replaced" "plugin.so.*build|build.*plugin.so"
fi
rm plugin.so
refused "a library that is gone" "plugin.so"
mv was.so plugin.so
restart_here && finish
is "$status" 0 "with the library back it runs" || explain
is "$(sed "s|$scratch||" "$scratch/form")" "" "every message says: cannot WHAT: REASON"
done_testing
