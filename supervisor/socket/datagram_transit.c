/*
 * datagram_transit.c - the port that a UDP socket has while its datagrams are sent to it again,
 * bound and given back.
 */
#include "supervisor/socket/datagram_transit.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "supervisor/socket/socket_families.h"

static bool is_group(const struct sockaddr_storage *name)
{
	const struct sockaddr_in *v4 = (const void *)name;
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)name)->sin6_addr;
	uint32_t address;

	if (name->ss_family == AF_INET)
		return IN_MULTICAST(ntohl(v4->sin_addr.s_addr));
	memcpy(&address, &v6->s6_addr[12], sizeof(address));
	return IN6_IS_ADDR_V4MAPPED(v6) ? IN_MULTICAST(ntohl(address))
					: IN6_IS_ADDR_MULTICAST(v6);
}

static socklen_t size_of(const struct image_socket *s)
{
	return s->family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* To a broadcast address none is without SO_BROADCAST. */
static bool is_sent_to(const struct image_socket *s, const struct sockaddr_storage *name)
{
	cleanup_fd int fd = socket(s->family, SOCK_DGRAM | SOCK_CLOEXEC, s->protocol);
	struct sockaddr_storage to = *name;

	((struct sockaddr_in *)&to)->sin_port = htons(9); /* none is sent */
	return fd >= 0 && !connect(fd, (struct sockaddr *)&to, size_of(s));
}

int socket_transit_begin(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	struct sockaddr_storage any = {.ss_family = s->family};
	struct sockaddr_storage *at = &q->made[number - 1].transit;
	int fd = q->made[number - 1].fd;
	socklen_t size = sizeof(*at);

	/* Its own address, with another port: IP_PKTINFO shows it. It has none if it was connected,
	 * and is no more. */
	*at = any;
	memcpy(at, s->name, s->name_size);
	((struct sockaddr_in *)at)->sin_port = 0;
	if ((is_group(at) || !is_sent_to(s, at) ||
		    bind(fd, (struct sockaddr *)at, size_of(s))) &&
		bind(fd, (struct sockaddr *)&any, size_of(s)))
		return err_set(e, errno, "cannot bind a socket to any port");
	return getsockname(fd, (struct sockaddr *)at, &size)
		       ? err_set(e, errno, "cannot query a socket's name")
		       : 0;
}

int socket_transit_end(struct socket_restore *q, size_t number, struct err *e)
{
	static const struct sockaddr nothing = {.sa_family = AF_UNSPEC};

	return connect(q->made[number - 1].fd, &nothing, sizeof(nothing))
		       ? err_set(e, errno, "cannot disconnect a socket")
		       : 0;
}

socklen_t socket_transit(const struct socket_restore *q, size_t number,
	const struct image_message *m, struct sockaddr_storage *to)
{
	const struct sockaddr_storage *at = &q->made[number - 1].transit;
	socklen_t size = size_of(&q->s[number - 1]);

	*to = *at;
	/* To any address of this machine: the sender's will do. */
	if (socket_is_any_address((const uint8_t *)at))
		memcpy(to, m->name, size);
	/* The port is at the same place for both families. */
	((struct sockaddr_in *)to)->sin_port = ((const struct sockaddr_in *)at)->sin_port;
	return size;
}
