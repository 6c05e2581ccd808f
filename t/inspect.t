#!/bin/bash
# trecr-inspect: says what is in an image.
. "$(dirname "$0")/lib.sh"

arena image
launch "$victim/debug"
inside=$(program_of "$sup")
checkpoint || explain
first=$path
freeze_away
second=$path
shows() { # NAME REGEX OPTION...
	local name=$1 pattern=$2
	shift 2
	trecr-inspect "$@" >inspect.out 2>inspect.err
	is $? 0 "trecr-inspect ${*//$PWD\//}" || diag "$(cat inspect.err)"
	like "$(cat inspect.out)" "$pattern" "$name"
}
shows "the command" "victim/debug" "$first"
shows "the process" "(^|[^0-9])$inside([^0-9]|\$)" "$first"
shows "a directory of checkpoints: the newest" "ckpt-000002" ck
shows "the stack" "\[stack\]" --regions "$first"
shows "the program's file" "r-x.*victim/debug" --regions "$first"
shows "the heap" "\[heap\]" --regions "$first"
shows "the leader" "$inside" --threads "$first"
is "$(grep -c debug inspect.out)" 2 "both threads"
shows "standard output" "$PWD/out" --fds "$first"
shows "frames of the leader" "innermost(.|
)*middle(.|
)*main" --stack "$first"
shows "frames of the other thread" "in_the_thread" --stack "$first"
shows "nothing is damaged" "" --verify "$first"
shows "two of them" "." --diff "$first" "$second"
shows "JSON" "." --json "$first"
ok "it is JSON, with process and threads" python3 -c '
import json, sys
d = json.load(open("inspect.out"))
assert sys.argv[1] in json.dumps(d), "no process id"' "$inside"
trecr-inspect --json --regions --threads --fds "$first" >inspect.out
ok "all of it as JSON" python3 -c 'import json; json.load(open("inspect.out"))'

arena sockets
launch "$victim/tcp_loopback" && checkpoint
is $? 0 "a program with sockets" || explain
[ -n "$skip_reason" ] || {
	unlike "$(trecr-inspect "$path")" '\?' "all that the summary counts has a name"
	shows "a listening socket" "TCP socket:\[[0-9]+\] 127.0.0.1:[0-9]+, listening \(backlog 6\)" --fds "$path"
	shows "a connection with bytes in it" \
		"127.0.0.1:[0-9]+, connected to 127.0.0.1:[0-9]+ socket:\[[0-9]+\], 8 bytes in it" --fds "$path"
	shows "one over IPv6" "\[::1\]:[0-9]+, connected to \[::1\]:[0-9]+" --fds "$path"
	shows "one that waits to be accepted" "waits to be accepted by socket" --fds "$path"
	shows "one that has ended" "other end closed, reset" --fds "$path"
}
sweep >/dev/null
cd "$scratch/1.image" || exit 1

cp "$first/$inside" core.was
trecr-inspect --core core "$first" 2>inspect.err
is $? 0 "--core" || diag "$(cat inspect.err)"
like "$(file -b core 2>/dev/null || eu-readelf -h core | grep -i type)" "[Cc]ore|CORE" "is a core file"
is "$(stat -c %a core)" 600 "that only the user can read"

trecr-inspect /no/such/place 2>err
isnt $? 0 "a place that is not there"
like "$(cat err)" '^trecr-inspect: cannot .*/no/such/place.*No such file' "is named"
trecr-inspect --nonsense "$first" 2>err
isnt $? 0 "an option that is not there"
trecr-inspect 2>err
isnt $? 0 "no image"
trecr-inspect --prune "$first"
is $? 0 "--prune"
not_ok "removes it" [ -e "$first" ]
ok "and leaves the others" [ -f "$second/job" ]
trecr-inspect --verify "$first" 2>err
isnt $? 0 "what is removed is not there"
printf 'ready\n' >out
restart_here && finish
is "$status" 0 "the other one restarts" || explain
done_testing
