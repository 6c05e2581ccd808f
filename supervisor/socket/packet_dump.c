/*
 * socket/packet_dump.c - packet sockets (AF_PACKET) at a checkpoint.
 *
 * Packets that wait in one are lost: nothing can put them into it again. Its program has to
 * reckon with that, as the kernel drops packets that it has no room for.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/notices.h"
#include "supervisor/fd/objects_dump.h"
#include "supervisor/socket/long_options.h"
#include "supervisor/socket/packet_sockets.h"
#include "supervisor/socket/sock_diag.h"
#include "supervisor/socket/sockets_dump.h"

/* Nothing shows their programs. */
#ifndef PACKET_FANOUT_CBPF
#define PACKET_FANOUT_CBPF 6
#define PACKET_FANOUT_EBPF 7
#endif

static int get_name(struct socket_dump *k, struct err *e)
{
	struct packet_name name = {0};
	socklen_t size = sizeof(name.address);

	if (getsockname(k->fd, (struct sockaddr *)&name.address, &size))
		return err_set(e, errno, "cannot query its name");
	if (name.address.sll_ifindex &&
		!if_indextoname(name.address.sll_ifindex, name.interface))
		return err_set(e, 0, "the network interface that it was bound to has gone");
	if (!name.address.sll_protocol && !name.address.sll_ifindex)
		return 0;
	memcpy(k->s.name, &name, sizeof(name));
	k->s.name_size = sizeof(name);
	return 0;
}

static int save_memberships(
	struct socket_dump *k, const struct packet_facts *facts, struct err *e)
{
	cleanup_buf struct buf all = {0};

	for (size_t i = 0; i < buf_count(&facts->memberships, struct packet_diag_mclist); i++) {
		const struct packet_diag_mclist *l =
			buf_at(&facts->memberships, struct packet_diag_mclist, i);
		struct packet_membership m = {.type = l->pdmc_type, .length = l->pdmc_alen};

		memcpy(m.address, l->pdmc_addr, sizeof(m.address));
		if (!if_indextoname(l->pdmc_index, m.interface))
			return err_set(e, errno,
				"cannot find the network interface of what it receives "
				"(PACKET_ADD_MEMBERSHIP)");
		/* As often as it has asked for. */
		for (uint32_t n = 0; n < l->pdmc_count; n++)
			buf_push(&all, struct packet_membership, &m);
	}
	socket_long_option_push(
		&k->options, SOL_PACKET, PACKET_ADD_MEMBERSHIP, all.data, all.len);
	return 0;
}

static int refuse_fanout(struct socket_dump *k, struct err *e)
{
	unsigned value = 0;
	socklen_t size = sizeof(value);

	if (getsockopt(k->fd, SOL_PACKET, PACKET_FANOUT, &value, &size))
		return err_set(e, errno, "cannot query its group (PACKET_FANOUT)");
	value = value >> 16 & 0xff;
	return value == PACKET_FANOUT_CBPF || value == PACKET_FANOUT_EBPF
		       ? err_set(e, 0,
				 "a program chooses among the sockets of its group "
				 "(PACKET_FANOUT_CBPF and _EBPF), which the kernel does not "
				 "show")
		       : 0;
}

static int save_packet_socket(
	struct socket_dump *k, const struct packet_facts *facts, struct err *e)
{
	if (facts->has_ring)
		return err_set(e, 0,
			"it shares a ring with the kernel (PACKET_RX_RING, PACKET_TX_RING), "
			"which is not supported: have the program read packets without a ring, "
			"or close the socket before the checkpoint");
	return get_name(k, e) || save_memberships(k, facts, e) || refuse_fanout(k, e) ? -1 : 0;
}

int socket_packet_look(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	struct pollfd p = {.fd = k->fd, .events = POLLIN};
	struct packet_facts facts;
	int failed;

	k->s.state = IMAGE_SOCKET_OPEN;
	failed = socket_diag_packet(k->inode, &facts, e) || save_packet_socket(k, &facts, e);
	buf_free(&facts.memberships);
	if (!failed && poll(&p, 1, 0) == 1 && p.revents & POLLIN)
		notice_add("%s: packets that wait in it are not saved",
			fd_object_at(d, k->object)->text);
	return failed ? -1 : 0;
}
