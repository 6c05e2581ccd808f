/*
 * socket/netlink_dump.c - netlink sockets at a checkpoint, if they wait for nothing. The C
 * library's getaddrinfo(3), Go and Java have such ones open.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <poll.h>
#include <string.h>

#include "supervisor/socket/sockets_dump.h"

/* The first 32 are part of its name, which one without a port does not have; those above are
 * joined by number only (man 7 netlink). */
static int save_groups(struct socket_dump *k, struct err *e)
{
	struct image_socket_option o = {
		.level = SOL_NETLINK, .name = NETLINK_ADD_MEMBERSHIP, .size = sizeof(uint32_t)};
	uint32_t groups[64] = {0};
	socklen_t size = sizeof(groups);

	if (getsockopt(k->fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, groups, &size))
		return err_set(e, errno, "cannot query its groups");
	if (size > sizeof(groups))
		return err_set(
			e, 0, "it may be a member of more netlink groups than can be queried");
	for (uint32_t i = k->s.name_size ? 32 : 0; i < size * 8; i++) {
		uint32_t group = i + 1;

		if (!(groups[i / 32] & 1u << i % 32))
			continue;
		memcpy(o.value, &group, sizeof(group));
		buf_push(&k->options, struct image_socket_option, &o);
	}
	return 0;
}

static int get_names(struct socket_dump *k, struct err *e)
{
	struct sockaddr_nl name, peer;
	socklen_t size = sizeof(name), peer_size = sizeof(peer);

	if (getsockname(k->fd, (struct sockaddr *)&name, &size))
		return err_set(e, errno, "cannot query its name");
	if (getpeername(k->fd, (struct sockaddr *)&peer, &peer_size))
		return err_set(e, errno, "cannot query its other end");
	/* Port 0 is the kernel, to which messages go without a port. */
	if (name.nl_pid) {
		memcpy(k->s.name, &name, size);
		k->s.name_size = size;
	}
	if (peer.nl_pid || peer.nl_groups) {
		memcpy(k->s.peer_name, &peer, peer_size);
		k->s.peer_name_size = peer_size;
		k->s.state = IMAGE_SOCKET_CONNECTED;
	}
	return 0;
}

int socket_netlink_look(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	struct pollfd p = {.fd = k->fd, .events = POLLIN};

	k->s.state = IMAGE_SOCKET_OPEN;
	if (poll(&p, 1, 0) == 1 && p.revents & (POLLIN | POLLERR))
		return err_set(e, 0, "an answer of the kernel waits in it");
	return get_names(k, e) || save_groups(k, e) ? -1 : 0;
}
