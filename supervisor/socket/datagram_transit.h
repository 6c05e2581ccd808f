/*
 * socket/datagram_transit.h - where a UDP socket is sent again what waited in it.
 *
 * Its own address will not do: others can have that, too (SO_REUSEADDR, SO_REUSEPORT), and which of
 * them gets a datagram is the kernel's choice; to a group or to all (broadcast) it would leave this
 * machine; and none comes to a socket of another interface. So it gets a port of its own, for the
 * moment: a port that the kernel has chosen, bind(2) with 0, is given back by disconnecting
 * (__udp_disconnect()), and the socket can be bound anew, with what it has received.
 */
#ifndef SUPERVISOR_SOCKET_DATAGRAM_TRANSIT_H
#define SUPERVISOR_SOCKET_DATAGRAM_TRANSIT_H

#include "supervisor/socket/sockets_restore.h"

/* Socket @number, which is new, gets such a port, and loses it again. */
int socket_transit_begin(struct socket_restore *q, size_t number, struct err *e);
int socket_transit_end(struct socket_restore *q, size_t number, struct err *e);

/* In between: the address for a message that came from @m->name. Returns its size. */
socklen_t socket_transit(const struct socket_restore *q, size_t number,
	const struct image_message *m, struct sockaddr_storage *to);

#endif
