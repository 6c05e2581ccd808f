#include "supervisor/socket/long_options.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* Bytes in an entry: two instructions of a filter. */
#define PART 16

bool socket_option_is_long(const struct image_socket_option *o)
{
	return (o->level == SOL_SOCKET && o->name == SO_ATTACH_FILTER) ||
	       (o->level == IPPROTO_ICMPV6 && o->name == ICMP6_FILTER) ||
	       (o->level == SOL_PACKET && o->name == PACKET_ADD_MEMBERSHIP);
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
					 "(SO_ATTACH_BPF), which nothing shows; a classic one "
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

ssize_t socket_long_option_set(
	int fd, const struct image_socket_option *options, size_t count, struct err *e)
{
	cleanup_buf struct buf data = {0};
	struct sock_fprog filter;
	size_t i;
	int r;

	for (i = 0; i < count && options[i].level == options->level &&
		    options[i].name == options->name;
		i++)
		buf_add(&data, options[i].value,
			options[i].size <= PART ? options[i].size : PART);
	/* Set when it was made. */
	if (options->level == SOL_PACKET)
		return i;
	filter.len = data.len / sizeof(struct sock_filter);
	filter.filter = data.data;
	r = options->level == SOL_SOCKET
		    ? setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter))
		    : setsockopt(fd, options->level, options->name, data.data, data.len);
	return r ? err_set(e, errno, "cannot set the filter of a socket") : (ssize_t)i;
}
