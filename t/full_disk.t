#!/bin/bash
# No room for an image: the program runs on, nothing is left of the attempt, the checkpoint
# before is whole, and with room the next one succeeds.
if [ -z "${FULL_DISK_NS:-}" ]; then
	# A small file system of its own, in a mount namespace.
	export FULL_DISK_NS=none
	options=(-m)
	[ "$(id -u)" = 0 ] || options=(-m -U --map-current-user --keep-caps)
	if unshare "${options[@]}" true 2>/dev/null; then
		FULL_DISK_NS=own exec unshare "${options[@]}" "${BASH:-bash}" "$0" "$@"
	fi
fi
. "$(dirname "$0")/lib.sh"

arena small
mkdir disk
if [ "$FULL_DISK_NS" = own ] && mount -t tmpfs -o size=40m,mode=700 small disk 2>mount.err; then
	ln -s disk ck
	launch "$victim/idle" count 16
	checkpoint || explain
	first=$path
	is "$(find ck/ -maxdepth 1 -name 'ckpt-*' | wc -l)" 1 "the first has room"
	head -c 15m /dev/zero >disk/filler
	checkpoint
	isnt $? 0 "the second has not"
	like "$(told)" '^trecr-ckpt: cannot .*No space left on device' "and the reason is said"
	is "$(cd ck/ && echo ckpt-*)" "ckpt-000001" "nothing is left of it"
	is "$(readlink ck/latest)" "ckpt-000001" "latest is where it was"
	ok "the first is whole" quiet trecr-inspect --verify "$first"
	ok "the program runs" kill -0 "$(program_of "$sup")"
	rm disk/filler
	checkpoint
	is $? 0 "with room there is a second" || explain
	finish
	is "$status" 0 "the program is whole" || explain
	restart_here && finish
	is "$status" 0 "and so is its checkpoint" || explain
	umount -l disk
else
	skip "a full disk" "no file system can be mounted here"
fi

# incremental NAME HOW [OPTION...]: an incremental checkpoint, by the OPTIONs, has no room. What has changed before
# it has changed since the first all the same, which the next refers to: with --fork, the kernel watches for pages
# written to since the failed one by then.
incremental() {
	arena "$1"
	mkdir disk
	if ! [ "$FULL_DISK_NS" = own ] || ! mount -t tmpfs -o size=60m,mode=700 small disk 2>mount.err; then
		skip "$1" "no file system can be mounted here"
		return
	fi
	ln -s disk ck
	RUN_FLAGS="--incremental --dirty=$2" launch "$victim/idle" touch 16 3000
	checkpoint || explain
	local first=$path watched
	watched=$(grep -c '^VmFlags:.* uw' "/proc/$(program_of "$sup")/smaps")
	[ "$2" = hash ] || [ "$watched" != 0 ] || diag "this kernel does not show pages that were not written to"
	kill -USR2 "$sup"
	await -t 60 -p "$sup" out '^touched 1$' >/dev/null
	head -c "$(($(stat -f -c '%a * %S' disk) - 2000000))" /dev/zero >disk/filler
	checkpoint "${@:3}"
	isnt $? 0 "$1 has no room"
	like "$(told)" '^trecr-ckpt: cannot .*No space left on device' "and says so"
	is "$(cd ck/ && echo ckpt-*) $(readlink ck/latest)" "ckpt-000001 ckpt-000001" "nothing is left of it"
	ok "its parent is whole" quiet trecr-inspect --verify "$first"
	rm disk/filler
	checkpoint
	is $? 0 "with room there is one" || explain
	ok "of which all can be read" quiet trecr-inspect --verify "$path"
	ok "and which refers to its parent" [ "$(du -sk "$path" | cut -f1)" -lt 14000 ]
	freeze_away || explain
	restart_here && finish
	is "$status" 0 "a restart from the last has what was written before the failure" || explain
	umount -l disk
}
incremental "an incremental checkpoint" hash
incremental "an incremental checkpoint with --dirty=uffd" uffd
incremental "one that is written while the program runs" uffd --fork

# A directory that has become read-only: a remounted disk.
arena readonly
mkdir disk
if [ "$FULL_DISK_NS" = own ] && mount -t tmpfs -o size=40m,mode=700 small disk 2>mount.err; then
	ln -s disk ck
	launch "$victim/idle" count 4
	freeze_away || explain
	first=$path
	launch "$victim/idle" count 4
	mount -o remount,ro disk
	checkpoint
	isnt $? 0 "a read-only directory"
	like "$(told)" '^trecr-ckpt: cannot .*Read-only file system' "is the reason given"
	ok "the one before is whole" quiet trecr-inspect --verify "$first"
	finish
	is "$status" 0 "the program is whole" || explain
	restart_here
	checkpoint
	isnt $? 0 "brought back from there, it cannot be saved there either"
	finish
	is "$status" 0 "but runs" || explain
	umount -l disk
else
	skip "a read-only directory" "no file system can be mounted here"
fi

# A limit on the size of files hits the supervisor, which must not die by SIGXFSZ.
arena limit
launch "$victim/idle" count 16
prlimit --pid "$sup" --fsize=4000000 2>prlimit.err || diag "$(cat prlimit.err)"
checkpoint
isnt $? 0 "a file size limit that is too low"
like "$(told)" '^trecr-ckpt: cannot .*File too large' "is the reason given"
ok "the supervisor lives" kill -0 "$sup"
is "$(find ck -name 'ckpt-*')" "" "nothing is left of it"
finish
is "$status" 0 "the program is whole" || explain

# A directory that is no longer one by the time of the checkpoint.
arena denied
launch "$victim/idle"
rm -rf ck && ln -s /dev/null ck
checkpoint
isnt $? 0 "a directory that has become something else"
like "$(told)" '^trecr-ckpt: cannot .*cannot open /dev/null: Not a directory' "is named"
finish
is "$status" 0 "the program is whole" || explain
done_testing
