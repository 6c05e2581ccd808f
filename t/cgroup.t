#!/bin/bash
# A program that was put into a cgroup is there again after a restart, if that still is.
. "$(dirname "$0")/lib.sh"

# A directory of a cgroup that we may make: version 2, or any hierarchy of version 1.
find_root() {
	local type at
	while read -r _ _ _ _ at _; do
		mkdir "$at/trecr-t-$$" 2>/dev/null && echo "$at/trecr-t-$$" && return
	done < <(grep -E ' - cgroup2? ' /proc/self/mountinfo | grep -v cpuset)
	return 1
}
group=$(find_root) || skip_all "no cgroup can be made here"
# Gone when its last process is.
remove() {
	sweep >/dev/null
	rmdir "$group" 2>/dev/null || [ ! -d "$group" ]
}
trap 'cd /; remove; rm -rf "$scratch"' EXIT

is_inside() {
	grep -q "/trecr-t-$$\$" "/proc/$(program_of "$sup")/cgroup"
}

arena there
launch "$victim/idle"
program_of "$sup" >"$group/cgroup.procs" || skip_all "no process can be put into a cgroup here"
freeze_away
ok "a program in a cgroup is brought back" restart_detached || explain
ok "into its cgroup" is_inside
unlike "$(cat restart.err)" cgroup "without a word"
freeze_away
ok "in a namespace" restart_detached --namespace || explain
ok "too" is_inside
freeze_away
ok "the cgroup can be removed" remove
restart_here
like "$(cat restart.err)" 'cannot put process [0-9]+ into its cgroup .*/trecr-t' \
	"that it is gone is told" || explain
finish
is "$status" 0 "the program is whole" || explain

# A thread alone: into any of version 1, or a threaded one of version 2.
put_thread() {
	mkdir "$group" && if [ -e "$group/tasks" ]; then
		echo "$1" >"$group/tasks"
	else
		echo threaded >"$group/cgroup.type" && echo "$1" >"$group/cgroup.threads"
	fi
}
arena apart
launch "$victim/threads"
inside=$(program_of "$sup")
# shellcheck disable=SC2012 # they are numbers
thread=$(ls "/proc/$inside/task" | tail -n 1)
if put_thread "$thread" 2>put.err; then
	not_ok "a thread in a cgroup of its own is refused" checkpoint
	like "$(cat ckpt.err)" "thread $thread of process $inside .*cgroup of its own" "by name"
else
	skip "a thread in a cgroup of its own is refused" "no thread can be put into one here"
fi
finish
is "$status" 0 "the program runs on" || explain
ok "the cgroup can be removed again" remove

# Copies of the program, of which all pages may be written to, take what its cgroup leaves, half of it
# at most.
find_limit() {
	local at
	for at in "$group" "/sys/fs/cgroup/memory/${group##*/}"; do
		mkdir -p "$at" && for limit in "$at"/memory.{max,limit_in_bytes}; do
			[ -w "$limit" ] && return
		done
	done 2>/dev/null
	return 1
}
arena room
launch "$victim/racing"
if find_limit && program_of "$sup" >"${limit%/*}/cgroup.procs" && echo 32M >"$limit"; then
	ok "in a cgroup with little memory left" checkpoint --fork || explain
	like "$(cat ckpt.err)" 'was stopped while its memory was written: a copy could need more memory' \
		"the program is stopped, and the user is told why"
	echo 512M >"$limit" && : >ckpt.err
	ok "with more" checkpoint --fork || explain
	unlike "$(cat ckpt.err)" 'was stopped' "it is not"
else
	skip "a cgroup's memory" "no cgroup with a limit of memory can be made here"
fi
finish
is "$status" 0 "the program is whole" || explain
rmdir "${limit%/*}" 2>/dev/null

# Where trecr itself is, the program came from: nothing is to be said.
arena same
launch "$victim/idle" && freeze_away && restart_here
unlike "$(cat restart.err)" cgroup "a program in trecr's own cgroup comes back in the caller's"
finish
done_testing
