/*
 * socket/tcp_repair.h - TCP connections to the outside that continue after a restart, by
 * TCP_REPAIR (man 7 tcp does not say: Documentation/networking of the kernel, and
 * net/ipv4/tcp.c). Takes CAP_NET_ADMIN over the network namespace.
 */
#ifndef SUPERVISOR_SOCKET_TCP_REPAIR_H
#define SUPERVISOR_SOCKET_TCP_REPAIR_H

#include <stdbool.h>

#include "ckpt/image.h"
#include "lib/err.h"
#include "lib/util.h"

/* How far @fd has come; what it has sent and is not acknowledged is added to @bytes, behind
 * what waits to be read. Its packets must be held back meanwhile (socket/connection_block.h).
 */
int socket_repair_save(int fd, struct image_tcp *t, struct buf *bytes, struct err *e);
/* Make @fd, a new socket, continue as @s and @t say, with @bytes as saved; but for
 * socket_repair_leave(): until then, its end is silent, and reading from it an error. */
int socket_repair_restore(int fd, const struct image_socket *s, const struct image_tcp *t,
	const struct buf *bytes, struct err *e);

/* Closing it will tell the other end nothing. */
void socket_repair_enter(int fd);
/* It resumes; with a @probe the other end is asked how far it has come. */
int socket_repair_leave(int fd, bool probe, struct err *e);

#endif
