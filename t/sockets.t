#!/bin/bash
# Sockets inside the tree: what is under way in them, their names, options and other ends.
. "$(dirname "$0")/lib.sh"

for v in ${SOCKET_VICTIMS:-unix_pairs unix_rights unix_names tcp_loopback udp sockets_tree sockets_busy}; do
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
done_testing
