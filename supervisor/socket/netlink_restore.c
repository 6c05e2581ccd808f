/*
 * socket/netlink_restore.c - netlink sockets at a restart.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>

#include "supervisor/socket/sockets_restore.h"

int socket_netlink_make(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	struct sockaddr_nl name;
	int *fd = &q->made[number - 1].fd;

	*fd = socket_new(q, s, e);
	if (*fd < 0)
		return -1;
	if (!s->name_size || !bind(*fd, (const struct sockaddr *)s->name, s->name_size))
		return 0;
	/* Its number may be another's by now; then the kernel gives it one. */
	memcpy(&name, s->name, sizeof(name));
	name.nl_pid = 0;
	return errno != EADDRINUSE || bind(*fd, (struct sockaddr *)&name, sizeof(name))
		       ? err_set(e, errno, "cannot bind a netlink socket")
		       : 0;
}
