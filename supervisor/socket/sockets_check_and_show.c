/*
 * socket/sockets_check_and_show.c - a socket of an image: whether it can be made here, and in words.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "supervisor/fd/fd.h"
#include "supervisor/fd/objects_restore.h"
#include "supervisor/socket/multicast.h"
#include "supervisor/socket/socket_families.h"

#define QUEUE_MAX (1u << 31)

static bool is_kept(const struct image *job, uint32_t number)
{
	const struct image_tcp *t;
	size_t count;

	t = image_note_array(job, IMAGE_NOTE_TCP, struct image_tcp, &count);
	for (size_t i = 0; i < count; i++)
		if (t[i].socket == number)
			return true;
	return false;
}

/* More than listen(2) makes room for here would be waited for in vain. */
static int check_room(const struct fd_check *c, const struct image_socket *all, size_t count,
	size_t number, struct err *e)
{
	uint32_t waiting = socket_waiting_at(all, count, number);
	cleanup_free char *text = NULL;
	size_t size;

	/* It lets in one more than it has room for (sk_acceptq_is_full()). */
	if (!waiting || read_file("/proc/sys/net/core/somaxconn", &text, &size, NULL) ||
		waiting <= strtoul(text, NULL, 10) + 1)
		return 0;
	return err_set(e, 0,
		"%u connections wait to be accepted at descriptor %d, more than a backlog may "
		"hold here; set net.core.somaxconn to %u",
		waiting, c->fd, waiting);
}

/* The network interfaces that it names. */
static int check_interfaces(
	const struct fd_check *c, const struct image_socket *s, struct err *e)
{
	const struct socket_family *f = socket_family_of(s);
	const struct image_socket_option *options;
	size_t count;

	options = image_note_array(
		c->job, IMAGE_NOTE_SOCKET_OPTIONS, struct image_socket_option, &count);
	if ((f->check && f->check(s, e)) ||
		socket_multicast_check(options + s->first_option, s->option_count, e))
		return err_prefix(e, "descriptor %d", c->fd);
	return 0;
}

int fd_socket_check(const struct fd_check *c, const struct image_description *x, struct err *e)
{
	const struct image_socket *all, *s;
	const struct image_object *o;
	size_t count;

	all = image_note_array(c->job, IMAGE_NOTE_SOCKETS, struct image_socket, &count);
	s = &all[x->args[0] - 1]; /* checked at opening */
	if (!socket_is_known(s->family, s->type, s->protocol))
		return err_set(e, 0, "descriptor %d is a socket of unknown family %u", c->fd,
			s->family);
	o = fd_object_info(c->job, x->object, IMAGE_OBJECT_SOCKET, e);
	if (!o)
		return -1;
	if (o->size > QUEUE_MAX)
		return err_set(e, 0, "the image is damaged: a socket holds more than it can");
	if ((s->state == IMAGE_SOCKET_WAITING &&
		    (!s->listener || all[s->listener - 1].state != IMAGE_SOCKET_LISTENING)) ||
		(s->state == IMAGE_SOCKET_CONNECTED && s->type != SOCK_DGRAM &&
			s->type != SOCK_RAW && !s->peer && !is_kept(c->job, x->args[0])))
		return err_set(e, 0, "the image is damaged: ends of a connection");
	if (check_interfaces(c, s, e))
		return -1;
	return s->state == IMAGE_SOCKET_LISTENING ? check_room(c, all, count, x->args[0], e)
						  : 0;
}

static const char *kind_of(const struct image_socket *s)
{
	const struct socket_family *f = socket_family_row(s->family);

	return f ? f->kind(s) : "unknown";
}

/* The number of some descriptor that leads to the socket at the other end would change from
 * process to process: its inode does not. */
static void show_end(const struct image *job, const struct image_socket *s, struct buf *out)
{
	const struct image_description *d;
	const struct image_socket *all;
	size_t count;
	uint32_t other = s->state == IMAGE_SOCKET_WAITING ? s->listener : s->peer;

	all = image_note_array(job, IMAGE_NOTE_SOCKETS, struct image_socket, &count);
	d = image_note_array(job, IMAGE_NOTE_DESCRIPTIONS, struct image_description, &count);
	switch (s->state) {
	case IMAGE_SOCKET_LISTENING:
		buf_printf(out, ", listening (backlog %u)", s->backlog);
		break;
	case IMAGE_SOCKET_CONNECTED:
		buf_printf(out, ", connected to ");
		if (s->peer_name_size)
			socket_name_show(s->peer_name, s->peer_name_size, out);
		break;
	case IMAGE_SOCKET_WAITING:
		buf_printf(out, ", waits to be accepted by ");
		break;
	case IMAGE_SOCKET_ENDED:
		buf_printf(out, ", other end closed");
		break;
	default:
		break;
	}
	if (other)
		buf_printf(out, "%ssocket:[%" PRIu64 "]",
			s->state == IMAGE_SOCKET_CONNECTED && s->peer_name_size ? " " : "",
			d[all[other - 1].description].inode);
}

void fd_socket_show(const struct image *job, const struct image_description *x, struct buf *out)
{
	static const char *const shut[] = {
		"", ", no more receiving", ", no more sending", ", shut down"};
	const struct image_object *o =
		fd_object_info(job, x->object, IMAGE_OBJECT_SOCKET, NULL);
	const struct image_socket *s;
	size_t count;

	s = image_note_array(job, IMAGE_NOTE_SOCKETS, struct image_socket, &count);
	s += x->args[0] - 1;
	buf_printf(out, "%s socket:[%" PRIu64 "]", kind_of(s), x->inode);
	if (s->name_size) {
		buf_printf(out, " ");
		socket_show_name(s, out);
	}
	show_end(job, s, out);
	if (s->state != IMAGE_SOCKET_ENDED)
		buf_printf(out, "%s", shut[s->shutdown & 3]);
	if (s->flags & IMAGE_SOCKET_RESET)
		buf_printf(out, ", reset");
	if (is_kept(job, x->args[0]))
		buf_printf(out, ", kept");
	if (o && s->message_count)
		buf_printf(out, ", %" PRIu64 " bytes in it", o->size);
	if (s->message_count > 1)
		buf_printf(out, " in %u messages", s->message_count);
}
