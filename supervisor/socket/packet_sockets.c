/*
 * packet_sockets.c - names of interfaces, and the check whether they are here.
 */
#include "supervisor/socket/packet_sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

bool packet_socket_name(const struct image_socket *s, struct packet_name *name)
{
	if (s->name_size != sizeof(*name))
		return false;
	memcpy(name, s->name, sizeof(*name));
	name->interface[IF_NAMESIZE - 1] = 0;
	return true;
}

static int find_interface(const char *name, int *index, struct err *e)
{
	*index = *name ? if_nametoindex(name) : 0;
	return *name && !*index ? err_set(e, errno, "there is no network interface %s", name)
				: 0;
}

int packet_socket_join(int fd, const void *memberships, size_t size, struct err *e)
{
	for (size_t at = 0; size - at >= sizeof(struct packet_membership);
		at += sizeof(struct packet_membership)) {
		struct packet_membership m;
		struct { /* struct packet_mreq, with a longer address */
			int index;
			uint16_t type, length;
			uint8_t address[32];
		} request;

		memcpy(&m, (const char *)memberships + at, sizeof(m));
		m.interface[IF_NAMESIZE - 1] = 0;
		request.type = m.type;
		request.length = m.length;
		memcpy(request.address, m.address, sizeof(request.address));
		if (find_interface(m.interface, &request.index, e))
			return -1;
		if (setsockopt(
			    fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof(request)))
			return err_set(e, errno,
				"cannot set what a packet socket receives at %s "
				"(PACKET_ADD_MEMBERSHIP)",
				m.interface);
	}
	return 0;
}

void packet_socket_show(const struct image_socket *s, struct buf *out)
{
	struct packet_name name;

	if (packet_socket_name(s, &name))
		buf_printf(out, "%s, protocol %#06x", *name.interface ? name.interface : "any",
			ntohs(name.address.sll_protocol));
}

int packet_socket_check(const struct image_socket *s, struct err *e)
{
	struct packet_name name;
	int index;

	return packet_socket_name(s, &name) ? find_interface(name.interface, &index, e) : 0;
}
