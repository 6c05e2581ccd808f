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

# Nobody can listen there then who has not said so beforehand (SO_REUSEADDR).
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
    client.recv(1)
    os._exit(0)
connection, _ = listening.accept()
print("ready", flush=True)
signal.pause()' "$(free_port)" && checkpoint
	kill -KILL "$(program_of "$sup")"
	await -t 30 -p "$sup" 2>>await.err
	sweep >/dev/null
	not_ok "a server that has to be waited for: not restarted" quiet restart_detached
	like "$(cat restart.err)" 'a connection of the past \(TIME_WAIT\)' "and why"
	sweep >/dev/null
fi
done_testing
