/*
 * socket/socket_options.h - the options of sockets: a table says which there are. A new one is a row in
 * socket_options.c, or in long_options.c if it is longer than an entry of the image.
 */
#ifndef SUPERVISOR_SOCKET_SOCKET_OPTIONS_H
#define SUPERVISOR_SOCKET_SOCKET_OPTIONS_H

#include <stdbool.h>

#include "ckpt/image.h"
#include "lib/err.h"
#include "lib/util.h"
#include "supervisor/socket/option_guard.h"

/* Add to @out (struct image_socket_option) the options of @fd, a socket as @s says, that differ
 * from a new one's. What cannot be set again is refused. */
int socket_options_save(int fd, const struct image_socket *s, struct buf *out, struct err *e);

/* Set the @count @options of @fd: the options that must be there before it gets a name (@early), or
 * the others. */
int socket_options_set(int fd, const struct image_socket_option *options, size_t count,
	bool early, struct err *e);

/* The value of an option, 0 when it is not in the list. */
int socket_option_value(
	const struct image_socket_option *options, size_t count, uint32_t level, uint32_t name);

/* Room for @size bytes under way in a buffer (SO_SNDBUF, SO_RCVBUF) of @fd for the time being,
 * as far as that is allowed; and back. */
struct socket_room {
	int fd, name, size, lock;
};

/* Have the receive buffer of a TCP connection, now or later, take @size bytes; @g puts back
 * what must be. */
int socket_grow_note(struct socket_guard *g, struct err *e);
void socket_grow(int fd, uint64_t size);

/* The same beyond all limits, which takes CAP_NET_ADMIN: -1 with errno set. */
int socket_force_note(struct socket_guard *g, struct err *e);
int socket_force(int fd, uint64_t size);

struct socket_room socket_room_make(int fd, int name, uint64_t size);
void socket_room_end(const struct socket_room *room);

#endif
