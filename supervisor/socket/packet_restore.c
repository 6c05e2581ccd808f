/*
 * socket/packet_restore.c - packet sockets (AF_PACKET) at a restart.
 */
#include <errno.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/socket.h>

#include "supervisor/socket/packet_sockets.h"
#include "supervisor/socket/sockets_restore.h"

/* Until it has its own filter or none (socket_packet_open()), it receives nothing. */
static int close_to_all(int fd, struct err *e)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = {1, &nothing};

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program))
		       ? err_set(e, errno, "cannot set the filter of a socket")
		       : 0;
}

static int join_fanout(
	struct socket_restore *q, const struct image_socket *s, int fd, struct err *e)
{
	cleanup_buf struct buf all = {0};

	for (uint32_t i = 0; i < s->option_count; i++) {
		const struct image_socket_option *o = &q->options[s->first_option + i];

		if (o->level == SOL_PACKET && o->name == PACKET_ADD_MEMBERSHIP)
			buf_add(&all, o->value,
				o->size < sizeof(o->value) ? o->size : sizeof(o->value));
	}
	return packet_socket_join(fd, all.data, all.len, e);
}

int socket_packet_make(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	struct socket_made *made = &q->made[number - 1];
	struct packet_name name;

	made->fd = socket_new(q, s, e);
	if (made->fd < 0 || join_fanout(q, s, made->fd, e))
		return -1;
	if (!packet_socket_name(s, &name))
		return 0;
	name.address.sll_ifindex = *name.interface ? if_nametoindex(name.interface) : 0;
	if (*name.interface && !name.address.sll_ifindex)
		return err_set(e, errno, "there is no network interface %s", name.interface);
	if (close_to_all(made->fd, e))
		return -1;
	return bind(made->fd, (struct sockaddr *)&name.address, sizeof(name.address))
		       ? err_set(e, errno, "cannot bind a packet socket to %s",
				 *name.interface ? name.interface : "all interfaces")
		       : 0;
}

static bool has_filter(const struct socket_restore *q, const struct image_socket *s)
{
	for (uint32_t i = 0; i < s->option_count; i++)
		if (q->options[s->first_option + i].level == SOL_SOCKET &&
			q->options[s->first_option + i].name == SO_ATTACH_FILTER)
			return true;
	return false;
}

int socket_packet_open(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	int none = 0;

	if (!s->name_size || has_filter(q, s))
		return 0;
	return setsockopt(q->made[number - 1].fd, SOL_SOCKET, SO_DETACH_FILTER, &none,
		       sizeof(none))
		       ? err_set(e, errno, "cannot remove the filter of a socket")
		       : 0;
}
