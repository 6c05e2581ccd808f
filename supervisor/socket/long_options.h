/*
 * socket/long_options.h - options that are longer than an entry of the image takes: filters
 * (SO_ATTACH_FILTER, man 7 socket), ICMP6_FILTER (RFC 3542), what a packet socket receives
 * (PACKET_ADD_MEMBERSHIP, packet_sockets.h) and multicast groups (multicast.h). Each is several
 * entries, one behind the other.
 */
#ifndef SUPERVISOR_SOCKET_LONG_OPTIONS_H
#define SUPERVISOR_SOCKET_LONG_OPTIONS_H

#include <stdbool.h>
#include <sys/types.h>

#include "ckpt/image.h"
#include "lib/err.h"
#include "lib/util.h"

bool socket_option_is_long(const struct image_socket_option *o);

/* Add to @out the entries of an option whose value is the @size bytes of @data. */
void socket_long_option_push(
	struct buf *out, int level, int name, const void *data, size_t size);

/* Add to @out the long options of @fd that differ from @fresh, a new socket of its kind. */
int socket_long_options_save(int fd, int fresh, struct buf *out, struct err *e);

/* Add to @out the value of one. How many entries it has. */
size_t socket_long_option_get(const struct image_socket_option *options, size_t count,
	uint32_t level, uint32_t name, struct buf *out);

/* Set the one of @fd whose first entry is @options[0]. How many entries it has, or -1. */
ssize_t socket_long_option_set(
	int fd, const struct image_socket_option *options, size_t count, struct err *e);

#endif
