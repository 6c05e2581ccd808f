/*
 * socket/raw_dump.c - raw sockets and ICMP (ping) sockets at a checkpoint. What they receive
 * comes from outside or from the kernel, and nothing can put it into them again: they have to
 * be empty.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/socket/multicast.h"
#include "supervisor/socket/socket_families.h"
#include "supervisor/socket/sockets_dump.h"

#define STATE_ESTABLISHED 1 /* include/net/tcp_states.h */

/* The other end of @k in a @line of its table, as the kernel keeps it in memory. */
static bool take_peer(struct socket_dump *k, const char *line)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	unsigned a[4], port, state;
	uint64_t inode;
	bool six = k->s.family == AF_INET6;

	if (six ? sscanf(line, "%*u: %*x:%*x %8x%8x%8x%8x:%x %x %*s %*s %*s %*u %*u %" SCNu64,
			  &a[0], &a[1], &a[2], &a[3], &port, &state, &inode) != 7
		: sscanf(line, "%*u: %*x:%*x %8x:%x %x %*s %*s %*s %*u %*u %" SCNu64, &a[0],
			  &port, &state, &inode) != 4)
		return false;
	if (inode != k->inode || state != STATE_ESTABLISHED)
		return false;
	v4.sin_addr.s_addr = a[0];
	memcpy(&v6.sin6_addr, a, sizeof(a));
	v4.sin_port = v6.sin6_port = htons(port);
	k->s.peer_name_size = six ? sizeof(v6) : sizeof(v4);
	memcpy(k->s.peer_name, six ? (void *)&v6 : (void *)&v4, k->s.peer_name_size);
	return true;
}

/* getpeername(2) does not show an address without a port; the kernel's tables do. */
static int find_peer(struct socket_dump *k, struct err *e)
{
	bool raw = k->s.type == SOCK_RAW, six = k->s.family == AF_INET6;
	const char *path = raw ? (six ? "/proc/net/raw6" : "/proc/net/raw")
			       : (six ? "/proc/net/icmp6" : "/proc/net/icmp");
	cleanup_file FILE *f = fopen(path, "re");
	char line[512];

	if (!f && errno != ENOENT)
		return err_set(e, errno, "cannot read %s", path);
	while (f && fgets(line, sizeof(line), f))
		if (take_peer(k, line))
			return 0;
	return 0;
}

/* To the kernel, a raw socket's port is its protocol; an ICMP socket's is the id of its
 * packets. */
static int get_names(struct socket_dump *k, struct err *e)
{
	if (socket_get_names(k, e) || (!k->s.peer_name_size && find_peer(k, e)))
		return -1;
	if (k->s.peer_name_size)
		k->s.state = IMAGE_SOCKET_CONNECTED;
	return 0;
}

int socket_raw_look(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	struct pollfd p = {.fd = k->fd, .events = POLLIN};

	k->s.state = IMAGE_SOCKET_OPEN;
	if (poll(&p, 1, 0) == 1 && p.revents & (POLLIN | POLLERR))
		return err_with(e, ERR_TRY_AGAIN,
			"a packet or report waits in it, which could not be put into it again");
	return get_names(k, e) || socket_multicast_save(k->fd, k->s.family, &k->options, e) ? -1
											    : 0;
}
