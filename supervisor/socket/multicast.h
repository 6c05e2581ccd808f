/*
 * socket/multicast.h - the multicast groups that a socket is in. No call lists them; but whether
 * it is in a certain one can be asked, and /proc/net lists the groups that anybody is in.
 */
#ifndef SUPERVISOR_SOCKET_MULTICAST_H
#define SUPERVISOR_SOCKET_MULTICAST_H

#include <stddef.h>

#include "ckpt/image.h"
#include "lib/err.h"
#include "lib/util.h"

/* A long option (long_options.h) of the level of @family has them. */
#define SOCKET_MULTICAST 42 /* MCAST_JOIN_GROUP */

/* Add to @out the groups of @fd, with the senders that it wants to hear, or not. */
int socket_multicast_save(int fd, int family, struct buf *out, struct err *e);

/* Join the groups that the @size bytes of @data, of that option, name. */
int socket_multicast_join(int fd, int level, const void *data, size_t size, struct err *e);

/* Before anything is made: whether the interfaces are here. */
int socket_multicast_check(
	const struct image_socket_option *options, size_t count, struct err *e);

#endif
