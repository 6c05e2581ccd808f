/*
 * socket/messages_dump.c - at a checkpoint: what waits in a socket to be read, unread bytes of a
 * TCP connection included, with the descriptors and credentials that came with it.
 * messages_restore.c sends it again.
 */
#include "supervisor/socket/messages_dump.h"

#include <string.h>

#include "supervisor/fd/objects_dump.h"
#include "supervisor/socket/queue_peek.h"
#include "supervisor/socket/socket_families.h"

struct queue {
	struct fd_dump *d;
	uint32_t number;
};

/* Take the descriptors of a message: all are ours to close or keep. */
static int take_fds(struct queue *q, const struct socket_peeked *m, struct err *e)
{
	int failed = 0;

	for (int i = 0; i < m->fd_count; i++) {
		uint32_t description;

		if (!failed)
			failed = q->d->find_received(q->d, m->fds[i], &description, e);
		else
			close(m->fds[i]);
		if (!failed)
			buf_push(&socket_dump_at(q->d, q->number)->rights, uint32_t,
				&description);
	}
	return failed;
}

static int take_message(void *context, const struct socket_peeked *m, struct err *e)
{
	struct queue *q = context;
	struct socket_dump *k = socket_dump_at(q->d, q->number);
	struct fd_object *o = fd_object_at(q->d, k->object);
	struct image_message message = {
		.offset = o->bytes.len,
		.size = m->size,
		.first_right = buf_count(&k->rights, uint32_t),
		.right_count = m->fd_count,
	};

	if (m->name_size > sizeof(message.name))
		return err_set(e, 0, "a sender's address is too long");
	message.name_size = m->name_size;
	memcpy(message.name, &m->name, m->name_size);
	if (m->has_cred) {
		message.flags |= IMAGE_MESSAGE_CRED;
		message.pid = m->cred.pid;
		message.uid = m->cred.uid;
		message.gid = m->cred.gid;
	}
	buf_add(&o->bytes, m->data, m->size);
	o->o.size = o->bytes.len;
	buf_push(&k->messages, struct image_message, &message);
	return take_fds(q, m, e); /* moves the sockets and objects */
}

/* What waits in a socket that listens is connections, not messages. */
static bool has_queue(const struct image_socket *s)
{
	bool connection = s->type != SOCK_DGRAM;

	if (!socket_has_trait(s, SOCKET_HAS_MESSAGES) || socket_is_raw(s) ||
		s->state == IMAGE_SOCKET_LISTENING)
		return false;
	return !connection || s->state != IMAGE_SOCKET_OPEN;
}

int socket_save_messages(struct fd_dump *d, uint32_t number, struct err *e)
{
	struct socket_dump *k = socket_dump_at(d, number);
	struct queue q = {d, number};

	return has_queue(&k->s) ? socket_peek(k->fd, k->inode, k->pid, take_message, &q, e) : 0;
}
