#!/bin/bash
# trecr-run: exit statuses, signals that are passed on, where checkpoints go, mistakes.
. "$(dirname "$0")/lib.sh"

arena status
for n in 0 1 77 124 255; do
	trecr-run -d ck -- "$victim/idle" exit $n
	is $? $n "a program that exits with $n"
done
for n in 9 15 6 11 10 2 1; do
	trecr-run -d ck -- "$victim/idle" signal $n 2>/dev/null
	is $? $((128 + n)) "a program that ends by signal $n"
done
trecr-run -d ck -- /no/such/program 2>err
is $? 127 "a program that is not there"
like "$(cat err)" '^trecr-run: .*/no/such/program.*No such file' "it is named"
PATH=$build:/usr/bin:/bin trecr-run -d ck -- no-such-program-anywhere 2>err
is $? 127 "a command that is not in PATH"
echo text >plain
trecr-run -d ck -- ./plain 2>err
is $? 126 "a program that may not be executed"
like "$(cat err)" '^trecr-run: .*\./plain.*Permission denied' "it is named"
trecr-run -d ck -- "$scratch" 2>err
is $? 126 "a directory"
for wrong in "" "-i" "-i x" "-k 0 -- true" "--nonsense" "-k -1 -- true" "--ckpt-signal KILL -- true" \
	"--ckpt-signal NOSUCH -- true"; do
	# shellcheck disable=SC2086
	trecr-run $wrong >out 2>err
	is $? 125 "trecr-run $wrong"
	like "$(cat err)" '^trecr-run: ' "says what is wrong"
	is "$(cat out)" "" "and nothing else"
done

# A supervisor holds a lock while it makes its control socket, and may be stopped then.
arena locked
flock "/tmp/trecr-$(id -u)" timeout -k 1 60 trecr-run -d ck -- "$victim/idle" exit 7
is $? 7 "a supervisor starts, too, while the directory of control sockets stays locked"

# No checkpoint asked for: nothing is written.
arena nothing
trecr-run -- "$victim/idle" exit 0
is "$(ls)" "" "a program without a checkpoint leaves no directory"
# Where there is a GPU driver, LD_AUDIT brings the stub in.
trecr-run --gpu=off -- env >env.out
is "$(grep -v '^_=' env.out | sort)" "$(env | grep -v '^_=' | sort)" "the environment is passed on"
printf 'in\nput' | trecr-run -- cat >cat.out
is "$(cat cat.out)" "in
put" "standard input and output are passed on"
trecr-run -d ck -- "$BASH" -c 'printf "<%s>" "$@"' x 'a b' '' '*' -i --full >args.out
is "$(cat args.out)" '<a b><><*><-i><--full>' "arguments are passed on as they are"
trecr-run "$victim/idle" exit 3 -d
is $? 3 "options end at the command, without -- too"

arena where
trecr-run -d "$PWD/deep" -- "$victim/idle" </dev/null >out 2>err &
sup=$!
await -p $sup out ready >/dev/null
(umask 000; cd /; checkpoint)
checkpoint
like "$path" "^$PWD/deep/ckpt-[0-9]{6}\$" "-d: the checkpoint is there"
is "$(stat -c %a "$PWD/deep" "$path" "$path"/* | sort | uniq -c | awk '{print $2}' | xargs)" \
	"600 700" "only the user can read it"
is "$(readlink deep/latest)" "${path##*/}" "latest leads to it"
finish
is "$status" 0 "the program runs on"

arena ahead
touch file
trecr-run -d file touch ran 2>err
is $? 125 "-d that is no directory"
is "$(cat err)" "trecr-run: checkpoints could not be written: cannot open $PWD/file: Not a directory" "is refused at the start"
mkdir open && chmod 777 open
trecr-run -d open touch ran 2>err
is $? 125 "-d into which others may write, whose checkpoints no restart would take"
like "$(cat err)" "refusing $PWD/open: others may write to it" "is refused, too"
not_ok "and the command was not run" [ -e ran ]
trecr-run -d not/yet mkdir not 2>err
is $? 0 "-d that may be made yet"
like "$(cat err)" "^trecr-run: as it is now, no checkpoint could be written: cannot create $PWD/not/yet, .*No such file" "is only warned of"
trecr-run -d fine true 2>err
is "$?, $(cat err), $(ls -A . | xargs)" "0, , err file not open" "one that can be written is not, and nothing is left"
{ trecr-run -d fine true 5>&1 >/dev/null 2>err; } | cat
like "$(cat err)" "^trecr-run: no checkpoint will be possible .* descriptor 5 \(pipe:.*--close-fds" "a pipe to another process is warned of"
{ { trecr-run -d fine true 5>&1 8>&7 >/dev/null 2>err; } | cat; } 7>&1 | cat
like "$(cat err)" " descriptor 5 \(pipe:[^ ]*, .*8 \(pipe:[^ ]*, which lead to other .*--close-fds" "and of each of several"
for kernel in /proc /sys; do
	trecr-run -d $kernel/trecr-t touch ran 2>err
	is $? 125 "-d $kernel/NAME is refused at the start"
	like "$(cat err)" "^trecr-run: checkpoints could not be written: cannot [a-z ]* $kernel" "with the reason"
done
{ trecr-run --close-fds -d fine true 5>&1 >/dev/null 2>err; } | cat
is "$(cat err)" "" "not one that is closed"
{ trecr-run -d fine true 5>&1 2>err; } | cat
is "$(cat err)" "" "nor one that is a standard stream, too"

arena environment
mkdir start
(cd start && exec trecr-run -d ../aside -- "$BASH" -c 'cd .. && exec "$0"' "$victim/idle") </dev/null >out 2>err &
sup=$!
await -p $sup out ready >/dev/null
rmdir start
checkpoint
is "$path" "$PWD/aside/ckpt-000001" "-d ../NAME counts from where it was started, even if that is gone" || explain
finish

rm out # or the line of the one before would be found
TRECR_DIR=$PWD/by-name trecr-run -- "$victim/idle" </dev/null >out 2>err &
sup=$!
await -p $sup out ready >/dev/null
checkpoint
like "$path" "^$PWD/by-name/ckpt-" "TRECR_DIR says where"
finish
is "$status" 0 "the program runs on"
rm out
trecr-run -- "$victim/idle" </dev/null >out 2>err &
sup=$!
await -p $sup out ready >/dev/null
inside=$(program_of $sup)
checkpoint
like "$path" "^$PWD/trecr-idle-$inside/ckpt-" "by default in ./trecr-NAME-PID"
finish

# A pipe that this shell has, too.
arena inherited
exec 7<> <(:)
launch "$victim/idle"
not_ok "a descriptor that was inherited can lead elsewhere" checkpoint
like "$(cat ckpt.err)" 'descriptor 7 .*leads to process .*--close-fds' "the refusal says what helps"
finish
# And a pipe that only another child of this shell has.
sleep 100 &
sibling=$!
launch "$victim/idle"
exec 7>&-
rm ckpt.err
not_ok "a pipe that a process beside has" checkpoint
like "$(cat ckpt.err)" 'descriptor 7 .*leads to process .*sleep.*--close-fds' "is refused with what helps, too"
finish
kill $sibling
exec 7<> <(:)
RUN_FLAGS=--close-fds launch "$victim/idle"
ok "--close-fds: the checkpoint succeeds" checkpoint
is "$(trecr-inspect --fds "$path" | grep -cE '^ +[0-9]+ ')" 3 "0, 1 and 2 are left"
finish
is "$status" 0 "and the program runs on"
exec 7>&-

arena signals
launch "$victim/idle" catch
for s in HUP INT QUIT TERM USR2 CONT WINCH ALRM; do
	kill -$s $sup
	ok "SIG$s to the supervisor reaches the program" quiet await -t 60 -p $sup out "^signal $(kill -l $s)\$"
done
finish
is "$status" 0 "the program was not harmed"
launch "$victim/idle" catch
freeze_away
restart_here
for s in HUP TERM USR2; do
	kill -$s $sup
	ok "SIG$s does so after a restart" quiet await -t 60 -p $sup out "^signal $(kill -l $s)\$"
done
finish
is "$status" 0 "and the program was not harmed"
launch "$victim/idle"
kill -TERM $sup
await -p $sup && wait $sup 2>/dev/null
is $? 143 "SIGTERM that the program does not catch ends it, and the supervisor says so"
launch "$victim/idle"
inside=$(program_of $sup)
kill -KILL "$inside"
await -p $sup && wait $sup 2>/dev/null
is $? 137 "SIGKILL to the program"
launch "$victim/idle"
inside=$(program_of $sup)
kill -STOP "$inside"
kill -CONT "$inside"
finish
is "$status" 0 "a program that was stopped and continued"

# As fg and ^Z do, one right after the other, when the supervisor takes its time.
stands_still() { # PID
	until [ "$(ps -o stat= -p "$1" | cut -c 1)" = T ]; do
		((SECONDS < limit)) || return 1
	done
}

continued() { # how many times the program has been
	grep -c '^signal 18$' out
}

stops_again() {
	local limit=$((SECONDS + 60)) helper
	before=$(continued)
	inside=$(program_of $sup)
	kill -STOP "$inside"
	stands_still $sup || return 1
	helper=$(pgrep -n -P $sup) # wakes the supervisor when it sees its program run
	kill -STOP "$helper" && stands_still "$helper" || return 1
	kill -CONT "$inside"
	until [ "$(continued)" = $((before + 1)) ]; do
		((SECONDS < limit)) || return 1
	done
	kill -STOP "$inside"
	stands_still "$inside" || return 1
	kill -CONT $sup
	checkpoint || return 1 # it has seen to its signals then
	stands_still $sup && stands_still "$inside" && [ "$(continued)" = $((before + 1)) ]
}

until_continued() {
	kill -CONT $sup
	finish
	[ "$status, $(continued)" = "0, $((before + 2))" ]
}
launch "$victim/idle" catch
ok "a program that was continued and stopped again stays stopped" stops_again
ok "until its supervisor is continued" until_continued
launch "$victim/idle" catch
freeze_away
restart_here --namespace
ok "the same in a namespace" stops_again
ok "until its supervisor is continued there" until_continued
# A signal with a value, to the supervisor: the program has the value, and the supervisor as its sender.
if have python3; then
	arena forwarded
	cat >forwarded.py <<-'END'
		import ctypes, os, struct, signal
		signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
		print("ready", flush=True)
		info, libc = ctypes.create_string_buffer(128), ctypes.CDLL(None)
		libc.sigwaitinfo((ctypes.c_ulong * 16)(1 << signal.SIGUSR2 - 1), info)
		signo, error, code, pad, pid, uid, value = struct.unpack_from("7i", info)
		print(signo, code, pid == os.getppid(), uid == os.getuid(), value)
	END
	launch python3 forwarded.py
	python3 -c 'import ctypes, sys
ctypes.CDLL(None).sigqueue(int(sys.argv[1]), 12, ctypes.c_void_p(4711))' $sup
	await -t 60 -p $sup
	is "$(sed 1d out)" "12 -1 True True 4711" "a signal with a value is forwarded whole" || explain
fi

# The end of the program between two calls by which the supervisor looks for it: the program ends
# as soon as it sees the second one, which strace delays.
if have strace && [ -r "/proc/$PPID/syscall" ] && [ "$(uname -m)" = x86_64 ]; then
	arena between
	cat >between.pl <<-'END'
		use POSIX ();
		my $supervisor = getppid;
		if (!fork) { # to leave an orphan, whose end wakes the supervisor up
			if (!fork) { 1 while getppid() != $supervisor }
			POSIX::_exit(0);
		}
		wait;
		my $waitid = "247 0x1 "; # waitid(P_PID, ...)
		my $until = time + 30;
		while (time < $until) {
			open(my $f, "<", "/proc/$supervisor/syscall") or POSIX::_exit(9);
			my $line = <$f> // "";
			POSIX::_exit(7) if index($line, $waitid) == 0;
		}
		POSIX::_exit(8);
	END
	timeout 60 strace -qq -o strace.out -e trace=waitid -e inject=waitid:delay_enter=2000000 \
		trecr-run -d ck perl between.pl
	is $? 7 "a program that ends while the supervisor looks for its end: its status"
else
	skip "a program that ends while the supervisor looks for its end: its status" "no strace"
fi
done_testing
