#!/bin/bash
# Sockets inside the tree: what is under way in them, their names, options and other ends.
. "$(dirname "$0")/lib.sh"

for v in ${SOCKET_VICTIMS:-unix_pairs unix_rights unix_names sock_options tcp_loopback udp sockets_tree sockets_busy}; do
	cycle $v
done
# Ended without a checkpoint's doing, the program leaves connections behind that the kernel
# remembers for a while.
crashed() {
	checkpoint && step="a crash" && {
		sweep >/dev/null
		restart_here
	} && step="going on" && finish && step="its own checks" && [ "$status" = 0 ] && said_ok
}
[ -n "${SOCKET_VICTIMS:-}" ] || for v in tcp_loopback unix_names; do
	scenario "$v: restarted right after a crash" crashed "$victim/$v"
done

# Nobody can listen there then who has not said so beforehand (SO_REUSEADDR), for a minute.
if have python3 && [ -z "${SOCKET_VICTIMS:-}" ]; then
	arena remembered
	launch python3 -c '
import os, signal, socket, sys
listening = socket.socket()
listening.bind(("127.0.0.1", int(sys.argv[1])))
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
    print("ok", flush=True)' "$(free_port)" && checkpoint
	kill -KILL "$(program_of "$sup")"
	await -t 30 -p "$sup" 2>>await.err
	sweep >/dev/null
	trecr-restart ck </dev/null >waiting.out 2>waiting.err &
	await -t 60 -p $! waiting.err 'waiting: .*TIME_WAIT' >/dev/null 2>>await.err
	result $? "a restart waits for a port that the kernel keeps, and says so" || explain
	sup=$!
	not_ok "it answers a checkpoint meanwhile" quiet checkpoint
	like "$(cat ckpt.err)" "the program is not back yet.*TIME_WAIT" "with the reason" || explain
	kill -TERM $!
	await -t 20 -p $! 2>>await.err
	wait $!
	is "$? $(tail -n 1 waiting.err | grep -c "^trecr-restart: cannot ")" "125 1" "it can be ended meanwhile" || explain waiting.err
	restart_detached && finish && said_ok
	result $? "and has it in the end" || explain
	is "$(grep -c waiting restart.err)" 1 "said once" || explain
	sweep >/dev/null
fi
done_testing
