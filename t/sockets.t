#!/bin/bash
# Sockets inside the tree: what is under way in them, their names, options and other ends.
. "$(dirname "$0")/lib.sh"

for v in ${SOCKET_VICTIMS:-unix_pairs unix_rights unix_names tcp_loopback udp sockets_tree sockets_busy}; do
	cycle $v
done
done_testing
