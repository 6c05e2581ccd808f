/*
 * socket/messages_restore.c - at a restart: what waited in a socket is sent to it again, in the
 * same pieces, with the same descriptors and credentials, from the same address.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "supervisor/fd/objects_restore.h"
#include "supervisor/socket/datagram_transit.h"
#include "supervisor/socket/queue_peek.h"
#include "supervisor/socket/socket_families.h"
#include "supervisor/socket/socket_options.h"
#include "supervisor/socket/sockets_restore.h"

#define PATIENCE_MS 5000

/* A message on its way. */
struct parcel {
	int from;
	const char *data;
	size_t size;
	int fds[SOCKET_PEEK_FDS];
	int fd_count;
	const struct image_message *m;
	bool stream;
	const uint8_t *to; /* an address, NULL: connected */
	uint32_t to_size;
};

static void add_control(const struct parcel *p, struct msghdr *h)
{
	struct cmsghdr *c = h->msg_control;
	struct ucred cred = {getpid(), p->m->uid, p->m->gid};
	size_t size = 0;

	if (p->fd_count) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(p->fd_count * sizeof(int));
		memcpy(CMSG_DATA(c), p->fds, p->fd_count * sizeof(int));
		size += CMSG_SPACE(p->fd_count * sizeof(int));
		c = (void *)((char *)h->msg_control + size);
	}
	if (p->m->flags & IMAGE_MESSAGE_CRED && p->m->pid) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_CREDENTIALS;
		c->cmsg_len = CMSG_LEN(sizeof(cred));
		memcpy(CMSG_DATA(c), &cred, sizeof(cred));
		size += CMSG_SPACE(sizeof(cred));
	}
	h->msg_controllen = size;
	if (!size)
		h->msg_control = NULL;
}

/* Runs in the sender's place. */
static int send_parcel(void *arg, int unused[2])
{
	struct parcel *p = arg;
	_Alignas(struct cmsghdr) char control[2048] = {0};
	size_t done = 0;

	do {
		struct iovec iov = {(char *)p->data + done, p->size - done};
		struct msghdr h = {
			.msg_name = (void *)p->to,
			.msg_namelen = p->to_size,
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control,
		};
		struct pollfd wait = {.fd = p->from, .events = POLLOUT};
		ssize_t n;

		if (!done)
			add_control(p, &h);
		else
			h.msg_control = NULL;
		n = sendmsg(p->from, &h, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN && p->stream && poll(&wait, 1, PATIENCE_MS) == 1)
			continue;
		if (n < 0)
			return -1;
		done += n;
	} while (p->stream && done < p->size);
	return 0;
}

static int find_sender(const struct socket_restore *q, const struct image_socket *to,
	const struct image_message *m)
{
	for (size_t i = 0; i < q->count; i++) {
		const struct image_socket *s = &q->s[i];

		if (s->type != SOCK_DGRAM || s->protocol != to->protocol || !s->name_size ||
			q->made[i].fd < 0)
			continue;
		if (socket_family_of(to)->is_sender(q, i + 1, to, m))
			return q->made[i].fd;
	}
	return -1;
}

/* Whom to send it from, and where to. *own is closed afterwards. */
static int address_parcel(struct socket_restore *q, size_t number, struct parcel *p, int *own,
	struct sockaddr_storage *to, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	const struct socket_family *f = socket_family_of(s);
	int size;

	p->from = q->made[number - 1].sender;
	if (p->from >= 0)
		return 0;
	p->from = find_sender(q, s, p->m);
	if (p->from < 0)
		p->from = *own = f->sender(q, s, p->m, e);
	if (p->from < 0)
		return -1;
	size = f->destination(q, number, p->m, to, e);
	if (size < 0)
		return -1;
	p->to = (const void *)to;
	p->to_size = size;
	return 0;
}

static int send_message(struct socket_restore *q, size_t number, const struct image_message *m,
	const struct buf *data, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	struct sockaddr_storage to;
	cleanup_fd int own = -1;
	struct parcel p = {
		.m = m, .stream = s->type == SOCK_STREAM, .fd_count = m->right_count};
	struct socket_as_creator as = {.root = q->made[number - 1].root};
	struct socket_room room;
	int r;

	if (m->offset > data->len || m->size > data->len - m->offset ||
		m->right_count > SOCKET_PEEK_FDS)
		return err_set(e, 0, "the image is damaged: messages in a socket");
	p.data = (const char *)data->data + m->offset;
	p.size = m->size;
	for (int i = 0; i < p.fd_count; i++)
		p.fds[i] = q->r->open[q->rights[m->first_right + i]];
	if (address_parcel(q, number, &p, &own, &to, e))
		return -1;
	if (m->flags & IMAGE_MESSAGE_CRED && m->pid) {
		as.pid = m->pid;
		as.has_user = true;
		as.uid = m->uid;
		as.gid = m->gid;
	}
	if (p.to && !as.root && s->directory)
		as.directory = image_string(q->r->job, s->directory);
	room = socket_room_make(p.from, SO_SNDBUF, data->len);
	r = socket_as_creator(&as, send_parcel, &p, NULL, "send again what waited in it", e);
	socket_room_end(&room);
	return r;
}

static int deliver_messages(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	uint32_t object = q->r->descriptions[s->description].object;
	const struct image_object *o;
	cleanup_buf struct buf data = {0};
	struct socket_room room;
	int r = 0;

	o = fd_object_info(q->r->job, object, IMAGE_OBJECT_SOCKET, e);
	if (!o || fd_object_contents(q->r, object, o->size, &data, e))
		return -1;
	room = socket_room_make(q->made[number - 1].fd, SO_RCVBUF, data.len);
	if (socket_is_tcp(s))
		socket_grow(q->made[number - 1].fd, data.len);
	for (uint32_t i = 0; i < s->message_count && !r; i++)
		r = send_message(q, number, &q->messages[s->first_message + i], &data, e);
	socket_room_end(&room);
	return r;
}

int socket_deliver(struct socket_restore *q, size_t number, struct err *e)
{
	return !q->s[number - 1].message_count || socket_find_kept(q, number) ||
			       q->made[number - 1].bound
		       ? 0
		       : deliver_messages(q, number, e);
}

int socket_deliver_datagrams(struct socket_restore *q, size_t number, struct err *e)
{
	if (!q->s[number - 1].message_count)
		return 0;
	return socket_transit_begin(q, number, e) || deliver_messages(q, number, e) ||
			       socket_transit_end(q, number, e)
		       ? -1
		       : 0;
}
