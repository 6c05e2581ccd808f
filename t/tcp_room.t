#!/bin/bash
# TCP inside the tree: more is under way than the receiver has room for, with the limits that Linux
# has by default.
. "$(dirname "$0")/lib.sh"

am_root || skip_all "needs root"
apart -n
[ -n "${TRECR_APART:-}" ] && loopback_up || skip_all "needs a network namespace"
echo 4096 131072 6291456 >/proc/sys/net/ipv4/tcp_rmem &&
	echo 4096 16384 4194304 >/proc/sys/net/ipv4/tcp_wmem || skip_all "cannot set the limits"

for v in tcp_loopback tcp_orphans; do
	cycle $v
done

# Without the privilege to go beyond the limits the message names them, and nothing is lost.
if have setpriv; then
	arena refused
	setpriv --bounding-set -net_admin --inh-caps -net_admin -- \
		trecr-run -d ck -- "$victim/tcp_orphans" </dev/null >out 2>err &
	sup=$!
	await -t 60 -p $sup out '^ready$' >/dev/null 2>await.err
	not_ok "without the privilege it is refused" quiet checkpoint
	like "$(cat ckpt.err)" "[0-9]+ bytes that were sent to it do not arrive.*tcp_rmem" \
		"the limits are named" || explain
	finish && said_ok
	result $? "and the program has it all" || explain
	sweep >/dev/null
fi

# Where the kernel has answered by a SYN cookie (here: always), a connection has one end only, as
# long as there is no room in the backlog; what that end sends is taken later.
if have python3 && echo 2 >/proc/sys/net/ipv4/tcp_syncookies; then
	arena half
	trecr-run -d ck -- python3 -c '
import fcntl, signal, socket
unsent = lambda s: int.from_bytes(fcntl.ioctl(s, 0x5411, bytes(4)), "little")  # SIOCOUTQ
listening = socket.create_server(("127.0.0.1", 0), backlog=0)
client, first = socket.socket(), socket.socket()
# It does not acknowledge the answer before it has something to send, and then it is too late.
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)
client.connect(listening.getsockname())
first.connect(listening.getsockname())
client.send(b"early")
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
listening.accept()
if listening.accept()[0].recv(5) == b"early" and not unsent(client):
    print("ok", flush=True)' </dev/null >out 2>err &
	sup=$!
	await -t 60 -p $sup out '^ready$' >/dev/null 2>await.err
	not_ok "a connection with one end is refused" quiet checkpoint
	like "$(cat ckpt.err)" "had no room for it yet" "its reason is the backlog" || explain
	finish && said_ok
	result $? "and the other end comes when there is room" || explain
	sweep >/dev/null
else
	skip "a connection with one end" "no python3, or no SYN cookies"
fi

# A listening socket's backlog can be limited more narrowly where a program comes back.
scenario_limited() {
	freeze_away && step="a restart with a lower limit" &&
		echo 4 >/proc/sys/net/core/somaxconn && ! restart_detached &&
		step="its reason" &&
		grep -q "1[0-9] connections wait to be accepted at descriptor [0-9]*, more than.*somaxconn" restart.err &&
		step="a restart with room" && echo 4096 >/proc/sys/net/core/somaxconn &&
		restart_here && step="running on" && finish && [ "$status" = 0 ] && said_ok
}
scenario "a backlog that has no room here: said before anything is made" scenario_limited \
	"$victim/backlogs"

# A port that the kernel keeps as a connection has ended there is waited for where a reset does not end
# that (RFC 1337).
if have python3; then
	arena remembered
	launch python3 -c '
import os, signal, socket, sys
listening = socket.socket()
listening.bind(("127.0.0.1", 0))
listening.listen()
if not os.fork():
    client = socket.create_connection(listening.getsockname())
    listening.close()
    sys.exit(client.recv(1) != b"x")
connection, _ = listening.accept()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready", flush=True)
signal.sigwait([signal.SIGUSR1])
connection.send(b"x")
if not os.wait()[1]:
    print("ok", flush=True)' && checkpoint
	echo 1 >/proc/sys/net/ipv4/tcp_rfc1337
	kill -KILL "$(program_of "$sup")"
	await -t 60 -p "$sup" 2>>await.err
	sweep >/dev/null
	trecr-restart ck </dev/null >waiting.out 2>waiting.err &
	await -t 60 -p $! waiting.err 'waiting: .*TIME_WAIT' >/dev/null 2>>await.err
	result $? "a restart waits for a port that the kernel keeps, and says so" || explain
	sup=$!
	not_ok "it answers a checkpoint meanwhile" quiet checkpoint
	like "$(cat ckpt.err)" "the program is not back yet.*TIME_WAIT" "with the reason" || explain
	kill -TERM $!
	await -t 60 -p $! 2>>await.err
	wait $!
	is "$? $(tail -n 1 waiting.err | grep -c "^trecr-restart: cannot ")" "125 1" "it can be ended meanwhile" || explain waiting.err
	restart_detached &
	await -t 60 restart.err 'waiting: ' >/dev/null 2>>await.err
	echo 0 >/proc/sys/net/ipv4/tcp_rfc1337
	wait $!
	sup=$(cat pidfile) && finish && said_ok
	result $? "and has it in the end" || explain
	is "$(grep -c waiting restart.err)" 1 "said once" || explain
	sweep >/dev/null
fi
done_testing
