#!/bin/bash
# The memory of a large process lies in several files of a checkpoint: all of them are needed, named when
# one is damaged or not there, and referred to by later checkpoints.
. "$(dirname "$0")/lib.sh"

# Blocks go to four files in turn, however little there is of them.
export TRECR_TEST_FILES=4

change() { # N: the program changes some pages, for the Nth time
	kill -USR2 "$sup"
	await -t 60 -p "$sup" out "^touched $1\$" >/dev/null
}

# Names of a checkpoint's files, with PID for the process's id.
files_of() {
	(cd "$1" && printf '%s\n' * | sed -E 's/^[0-9]+/PID/' | sort | xargs)
}

# refused NAME REGEX [IMAGE]: restart says no, with the reason, and starts nothing
refused() {
	timeout -k 1 60 trecr-restart "${3:-ck}" </dev/null >restart.out 2>restart.err
	is $? 125 "$1" || explain
	like "$(cat restart.err)" "$2" "which is named"
}

# comes_back NAME [OPTION...]: restarts, and the program finds all as it was
comes_back() {
	status=none
	restart_here "${@:2}" && finish
	is "$status" 0 "$1" || explain
}

arena chain
RUN_FLAGS="--incremental -k 9"
launch "$victim/idle" touch 16 3000
for i in 1 2 3; do
	checkpoint || explain
	change $i
done
checkpoint -s || explain
await -t 60 -p "$sup"
is "$(files_of ck/ckpt-000001)" "PID PID.1 PID.2 PID.3 job" "the memory lies in several files"
is "$(files_of ck/ckpt-000004)" "PID PID.1 PID.2 PID.3 job" "that of an incremental checkpoint, too"
is "$(stat -c %a ck/ckpt-000001/* | sort -u)" 600 "only the user can read them"
ok "all of it is right" quiet trecr-inspect --verify ck
is "$(trecr-inspect ck | sed -nE 's/^chain +//p' | sed 's/ ([^)]*)//g')" \
	"ckpt-000003, ckpt-000002, ckpt-000001" "the chain has each checkpoint once" || explain
is "$(trecr-inspect --json ck/ckpt-000001 | grep -c '"referenced": *0,')" 1 \
	"what lies in further files of a checkpoint is its own" ||
	diag "$(trecr-inspect --json ck/ckpt-000001 | head -c 2000)"
comes_back "restarted from a chain of such checkpoints, the program is whole"
restart_here --incremental || explain
change 4
checkpoint || explain
ok "a checkpoint after a restart refers to them" quiet trecr-inspect --verify "$path"
finish
comes_back "and can be restarted"
trecr-inspect --prune ck/ckpt-000001 >prune.out 2>prune.err
isnt $? 0 "pruning one that others need is refused"
ok "pruning the last is not" quiet trecr-inspect --prune "$path"
ok "with all its files" test ! -e "$path"

# Debuggers read one file: --core makes it.
pid=$(ls ck/ckpt-000001 | grep -v -e job -e '\.')
trecr-inspect --core core ck/ckpt-000001 2>inspect.err
is $? 0 "--core" || explain inspect.err
ok "which has all of the memory" [ "$(stat -c %s core)" -gt $((16 << 20)) ]

cp -a ck good
for file in "$pid.2" "$pid.3"; do
	for n in 1 4; do
		from=ck/ckpt-00000$n/$file
		size=$(stat -c %s "$from")
		rm "$from"
		refused "$file of checkpoint $n is missing" "ckpt-00000$n/$file"
		cp -a "good/ckpt-00000$n/$file" "$from"
		truncate -s $((size - 4096)) "$from"
		refused "it is cut off" "ckpt-00000$n/$file: it is truncated"
		cp -a "good/ckpt-00000$n/$file" "$from"
		chmod g+w "$from"
		refused "others may write to it" "ckpt-00000$n/$file"
		cp -a "good/ckpt-000002/$file" "$from"
		refused "it is another checkpoint's" "ckpt-00000$n/$file: it is not"
		cp -a "good/ckpt-00000$n/$file" "$from"
		edit-image "$from" flip 100
		refused "its header is damaged" "ckpt-00000$n/$file: its header is damaged"
		edit-image "$from" flip 100
	done
	# All blocks of the last are in use.
	edit-image "$from" flip $((size - 1))
	refused "its last block is damaged" "ckpt-000004/$file: the block at .*checksum.*; an older checkpoint is ck/ckpt-000003 "
	not_ok "and --verify finds it" quiet trecr-inspect --verify ck
	edit-image "$from" flip $((size - 1))
done
ok "whole again after each" quiet trecr-inspect --verify ck

# Under another name, and nowhere near the directory it was in.
mkdir -m 700 else
mv ck/ckpt-000001 else/moved
IMAGE=else/moved
comes_back "a full checkpoint can be moved and renamed"
unset IMAGE

arena compressed
RUN_FLAGS="--incremental --compress=lz4 -j 3"
launch "$victim/idle" touch 16 3000
checkpoint && change 1 && freeze_away || explain
is "$(files_of ck/ckpt-000001)" "PID PID.1 PID.2 PID.3 job" "compressed memory lies in several files"
ok "all of it is right" quiet trecr-inspect --verify ck
comes_back "and comes back"

# What processes share is in files of the job's, private memory may be written behind their back.
arena shared
RUN_FLAGS="--fork -j 3"
launch "$victim/shared_anon" && checkpoint && freeze_away || explain
like "$(files_of ck/ckpt-000001)" "job job.1 job.2 job.3" "shared memory lies in several files"
comes_back "and comes back"

# As many files as there are threads that write at once, if there is that much memory.
unset TRECR_TEST_FILES
arena small
RUN_FLAGS="-j 16"
launch "$victim/idle" megabytes 40 && freeze_away || explain
is "$(files_of ck/ckpt-000001)" "PID job" "what is small is in one file"
comes_back "and comes back"
arena large
RUN_FLAGS="-j 8"
launch "$victim/idle" megabytes 140 && freeze_away || explain
ok "of 140 MiB there are three files at most" [ "$(ls ck/ckpt-000001 | wc -l)" -le 4 ]
comes_back "and they come back" -j 3
done_testing
