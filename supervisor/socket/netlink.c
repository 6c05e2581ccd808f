/*
 * socket/netlink.c - netlink sockets at a checkpoint: those that wait for nothing. The C
 * library's getaddrinfo(3), Go and Java have such ones open.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <poll.h>
#include <string.h>

#include "supervisor/socket/dump.h"

/* Groups above 32 are joined by number only (man 7 netlink, NETLINK_ADD_MEMBERSHIP). */
static int check_groups(int fd, struct err *e)
{
	uint32_t groups[64] = {0};
	socklen_t size = sizeof(groups);

	if (getsockopt(fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, groups, &size))
		return err_set(e, errno, "cannot ask for its groups");
	for (size_t i = 1; i < ARRAY_SIZE(groups); i++)
		if (groups[i])
			return err_set(e, 0,
				"it is in netlink groups above 32, which is not "
				"supported");
	return 0;
}

int socket_netlink_look(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	struct pollfd p = {.fd = k->fd, .events = POLLIN};
	socklen_t size = sizeof(k->s.name);

	k->s.state = IMAGE_SOCKET_OPEN;
	if (poll(&p, 1, 0) == 1 && p.revents & (POLLIN | POLLERR))
		return err_set(e, 0, "an answer of the kernel waits in it");
	if (getsockname(k->fd, (struct sockaddr *)k->s.name, &size))
		return err_set(e, errno, "cannot ask for its name");
	k->s.name_size = size;
	size = sizeof(k->s.peer_name);
	if (!getpeername(k->fd, (struct sockaddr *)k->s.peer_name, &size))
		k->s.peer_name_size = size;
	return check_groups(k->fd, e);
}
