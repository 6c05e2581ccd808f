/*
 * socket/time_wait_ports.h - ports that the kernel keeps for a minute, as a connection has
 * ended there (TIME_WAIT).
 */
#ifndef SUPERVISOR_SOCKET_TIME_WAIT_PORTS_H
#define SUPERVISOR_SOCKET_TIME_WAIT_PORTS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether local @port is in use by nothing but connections of the past: such as are in TIME_WAIT, and such as no
 * process has open and that are closing. */
bool time_wait_holds_port(unsigned port);

/* Have the kernel forget the connections of @port with both ends on this machine, if nobody
 * else has the port; those that are closing are waited for, for a second at most. Whether that has freed it. */
bool past_connections_forget(unsigned port);

/* Have connect(2) choose the port of @name for the socket @fd, from a range with nothing else
 * in it: where a connection of the past holds it, it can be had so, but not be bound. That is
 * so only as long as all sockets with it have come to it in this way (inet_hash_connect()). */
bool past_connections_share(int fd, const uint8_t *name, uint32_t size);

#endif
