#!/bin/bash
# UNIX sockets that lead to other programs: a datagram socket finds the name again that it sent
# to. That a connection is refused is a row of t/refuse.t.
. "$(dirname "$0")/lib.sh"

have python3 || skip_all "no python3"
export LOG_SOCKET=$scratch/log

# logging NAME HOW: the victim, and a log that is not in the tree.
logging() {
	rm -f "$LOG_SOCKET" "$scratch/logged"
	python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("bound", flush=True)
while True:
    print(s.recv(100).decode(), end="", flush=True)
' "$LOG_SOCKET" >"$scratch/logged" &
	log=$!
	await -t 60 -p $log "$scratch/logged" '^bound$' >/dev/null
	scenario "$1" "$2" "$victim/unix_log"
}

ends_well() {
	step="running on"
	finish && step="its own checks" && [ "$status" = 0 ] && said_ok && step="the log" &&
		await -t 60 "$scratch/logged" '^after$' >/dev/null &&
		[ "$(cat "$scratch/logged")" = "bound
before
after" ]
}
again() {
	freeze_away && step=restart && restart_detached && step="second checkpoint" &&
		freeze_away && step="second restart" && restart_here && ends_well
}
on() {
	checkpoint && ends_well
}
logging "a datagram socket that sends to a name: restarted twice" again
logging "and runs on after a checkpoint" on

gone() {
	freeze_away || return 1
	kill $log
	wait $log 2>/dev/null
	step="the message"
	! restart_here && grep -q "connect a socket to $LOG_SOCKET" restart.err
}
logging "without that name, it is not brought back" gone
done_testing
