/*
 * long_options.c - each of these options, read and set.
 */
#include "supervisor/socket/long_options.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "supervisor/socket/multicast.h"

/* Bytes in an entry: two instructions of a filter. */
#define PART 16

bool socket_option_is_long(const struct image_socket_option *o)
{
	return (o->level == SOL_SOCKET && o->name == SO_ATTACH_FILTER) ||
	       (o->level == IPPROTO_ICMPV6 && o->name == ICMP6_FILTER) ||
	       (o->level == SOL_PACKET && o->name == PACKET_ADD_MEMBERSHIP) ||
	       ((o->level == IPPROTO_IP || o->level == IPPROTO_IPV6) &&
		       o->name == SOCKET_MULTICAST);
}

void socket_long_option_push(
	struct buf *out, int level, int name, const void *data, size_t size)
{
	for (size_t at = 0; at < size; at += PART) {
		struct image_socket_option o = {.level = level,
			.name = name,
			.size = size - at < PART ? size - at : PART};

		memcpy(o.value, (const char *)data + at, o.size);
		buf_push(out, struct image_socket_option, &o);
	}
}

/* The length is a number of instructions (sk_get_filter()). */
static int save_filter(int fd, struct buf *out, struct err *e)
{
	cleanup_buf struct buf code = {0};
	socklen_t count = 0;
	char none;

	if (getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, &none, &count))
		return errno == EACCES
			       ? err_set(e, 0,
					 "it has a filter that is an eBPF program "
					 "(SO_ATTACH_BPF), which the kernel does not show; a "
					 "classic one "
					 "(SO_ATTACH_FILTER) could be saved")
			       : err_set(e, errno, "cannot read its filter (SO_GET_FILTER)");
	if (!count)
		return 0;
	buf_grow(&code, count * sizeof(struct sock_filter));
	if (getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, code.data, &count))
		return err_set(e, errno, "cannot read its filter (SO_GET_FILTER)");
	socket_long_option_push(out, SOL_SOCKET, SO_ATTACH_FILTER, code.data, code.len);
	return 0;
}

/* Which only raw sockets of ICMPv6 have. */
static void save_icmp6(int fd, int fresh, struct buf *out)
{
	struct icmp6_filter now, new;
	socklen_t size = sizeof(now), new_size = sizeof(new);

	if (!getsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &now, &size) &&
		!getsockopt(fresh, IPPROTO_ICMPV6, ICMP6_FILTER, &new, &new_size) &&
		memcmp(&now, &new, sizeof(now)))
		socket_long_option_push(out, IPPROTO_ICMPV6, ICMP6_FILTER, &now, sizeof(now));
}

int socket_long_options_save(int fd, int fresh, struct buf *out, struct err *e)
{
	save_icmp6(fd, fresh, out);
	return save_filter(fd, out, e);
}

size_t socket_long_option_get(const struct image_socket_option *options, size_t count,
	uint32_t level, uint32_t name, struct buf *out)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		if (options[i].level == level && options[i].name == name) {
			buf_add(out, options[i].value,
				options[i].size <= PART ? options[i].size : PART);
			found++;
		}
	return found;
}

static int set_filter(int fd, const struct buf *code)
{
	struct sock_fprog filter = {
		.len = code->len / sizeof(struct sock_filter), .filter = code->data};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter));
}

ssize_t socket_long_option_set(
	int fd, const struct image_socket_option *options, size_t count, struct err *e)
{
	cleanup_buf struct buf data = {0};
	uint32_t level = options->level, name = options->name;
	size_t found = socket_long_option_get(options, count, level, name, &data);
	int r;

	/* Set when it was made. */
	if (level == SOL_PACKET)
		return found;
	if (name == SOCKET_MULTICAST && level != SOL_SOCKET)
		return socket_multicast_join(fd, level, data.data, data.len, e)
			       ? -1
			       : (ssize_t)found;
	r = level == SOL_SOCKET ? set_filter(fd, &data)
				: setsockopt(fd, level, name, data.data, data.len);
	return r ? err_set(e, errno, "cannot set the filter of a socket") : (ssize_t)found;
}
