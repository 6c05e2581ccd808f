#!/bin/bash
# What trecr-run takes: few system calls before the program runs, no libraries that few programs need,
# and nothing at all while the program works.
. "$(dirname "$0")/lib.sh"

have strace || skip_all "no strace"
apart -m
arena cost
strace -f -qq -o trace trecr-run -d ck --close-fds -- /bin/true </dev/null >/dev/null 2>&1
is $? 0 "a program runs"
before=$(awk '/execve\(/ && ++n == 2 { exit } { print }' trace)
unlike "$before" 'lib(nftnl|mnl|dw|elf)\.' "no library is loaded that few programs need"
# What libraries take depends on how many are linked statically; what the supervisor does once there is a child, on
# the machine's speed.
count=$(sed '/clone/q' <<<"$before" | grep -cvE '\.so|(mmap|mprotect|munmap|brk|pread64|close)\(|<\.\.\.')
# Where there is a GPU, its driver is looked at.
[ -e /dev/nvidiactl ] && most=95 || most=75
ok "few system calls come before the program" [ "$count" -le $most ]
note "$count system calls"
like "$before" '(clone|clone3)\(.*CLONE_VM' "the supervisor's memory is not copied for it"

# Before Linux 5.16 a core dump would end all that have the same memory.
older=$scratch/osrelease
echo 5.15.10 >"$older"
if [ -n "${TRECR_APART:-}" ] && mount --bind "$older" /proc/sys/kernel/osrelease; then
	strace -f -qq -o trace trecr-run -d ck --close-fds -- /bin/true </dev/null >/dev/null 2>&1
	is $? 0 "a program runs on Linux 5.15"
	unlike "$(cat trace)" 'CLONE_VM' "in memory of its own from the start"
	umount /proc/sys/kernel/osrelease
else
	skip "a program runs on Linux 5.15" "this takes root"
	skip "in memory of its own from the start" "this takes root"
fi

strace -qq -o trace trecr-run -d ck --close-fds -- \
	"$BASH" -c 'for ((i = 0; i < 40; i++)); do /bin/true; done; exit 7'
is $? 7 "a program of 41 processes runs"
count=$(grep -c '^poll(.*, -1)' trace)
ok "the supervisor sleeps meanwhile" [ "$count" -le 20 ]
note "awake $count times"

arena ways
mkdir folder folder/command empty first second
printf 'exit 5\n' | tee script first/command second/command >/dev/null
chmod +x script second/command
trecr-run -d ck ./script
is $? 5 "a script without #! runs"
PATH=$PWD/folder:$PWD/first:$PWD/none:$PWD/second:$build:$PATH trecr-run -d ck command
is $? 5 "PATH is searched as a shell does: not a folder, nor what may not be executed"
(cd second && PATH=:$build:/usr/bin:/bin trecr-run -d ck command)
is $? 5 "an empty element of PATH is the working directory"
PATH=$PWD/first:$build:/usr/bin:/bin trecr-run -d ck command 2>err
is $? 126 "a command that may not be executed"
like "$(cat err)" '^trecr-run: cannot execute command: Permission denied' "is named"
(trap '' TSTP CHLD && exec trecr-run -d ck grep SigIgn /proc/self/status) >out
like "$(cat out)" '0*90000$' "signals that were ignored are ignored by the program"

# A stop that comes before the program is executed is the program's, and the shell hears of it.
arena stop
set -m
TRECR_TEST_STOPS_EARLY=1 trecr-run -d ck "$BASH" -c 'exit 9' &
sup=$!
wait $sup
is "$(kill -l $?)" STOP "a program that is stopped before it is executed stops its supervisor"
inside=$(program_of $sup)
is "$(readlink "/proc/$inside/exe")" "$(readlink "/proc/$sup/exe")" "before it, indeed"
fg %% >fg.out 2>&1
is $? 9 "and runs when it is continued"
done_testing
