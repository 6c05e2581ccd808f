/*
 * sockets_restore.c - a socket with its other end, connections that wait to be accepted, and
 * what is set when all are there.
 */
#include "supervisor/socket/sockets_restore.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "supervisor/fd/temporary_directories.h"
#include "supervisor/fd_kinds/epoll_restore.h"
#include "supervisor/socket/kept_connections.h"
#include "supervisor/socket/socket_families.h"
#include "supervisor/socket/socket_options.h"

/* ---- one after the other ---- */

int socket_new_plain(struct socket_restore *q, const struct image_socket *s, struct err *e)
{
	int fd = socket(s->family, s->type | SOCK_CLOEXEC, s->protocol);

	return fd < 0 ? err_set(e, errno, "cannot create a socket")
		      : fd_lift_into(q->r, s->description, fd, e);
}

int socket_new(struct socket_restore *q, const struct image_socket *s, struct err *e)
{
	int fd = socket_new_plain(q, s, e);

	if (fd < 0)
		return -1;
	if (socket_options_set(fd, &q->options[s->first_option], s->option_count, true, e)) {
		close(fd);
		return -1;
	}
	return fd;
}

int socket_is_new(struct socket_restore *q, size_t number, struct err *e)
{
	int fd = q->made[number - 1].fd;

	return fd < 0 ? 0 : fd_epolls_try(q->r, q->s[number - 1].description, fd, e);
}

int socket_make(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];

	if (q->made[number - 1].fd >= 0)
		return 0;
	if (socket_family_of(s)->make(q, number, e))
		return -1;
	/* With it its other end has been made. */
	return socket_is_new(q, number, e) || (s->peer && socket_is_new(q, s->peer, e)) ? -1
											: 0;
}

int fd_socket_restore(struct fd_restore *r, const struct image_description *x, struct err *e)
{
	struct socket_restore *q = r->sockets;

	return socket_make(q, x->args[0], e) ? -1 : q->made[x->args[0] - 1].fd;
}

/* What the functions of its family take for granted. */
static int check_family(const struct image_socket *s, struct err *e)
{
	const struct socket_family *f = socket_family_row(s->family);
	bool waits = s->state == IMAGE_SOCKET_LISTENING || s->state == IMAGE_SOCKET_WAITING;

	if (!f)
		return err_set(
			e, 0, "the image is damaged: a socket of unknown family %u", s->family);
	if ((waits && !f->listen) || (s->message_count && !(f->traits & SOCKET_HAS_MESSAGES)))
		return err_set(e, 0, "the image is damaged: a socket of family %s with %s",
			f->name, waits ? "a backlog" : "messages");
	return 0;
}

int socket_restore_begin(struct fd_restore *r, struct err *e)
{
	struct socket_restore *q = xcalloc(1, sizeof(*q));
	size_t count;

	r->sockets = q;
	q->r = r;
	q->s = image_note_array(r->job, IMAGE_NOTE_SOCKETS, struct image_socket, &q->count);
	q->options = image_note_array(
		r->job, IMAGE_NOTE_SOCKET_OPTIONS, struct image_socket_option, &count);
	q->messages =
		image_note_array(r->job, IMAGE_NOTE_MESSAGES, struct image_message, &count);
	q->rights = image_note_array(r->job, IMAGE_NOTE_RIGHTS, uint32_t, &count);
	q->tcp = image_note_array(r->job, IMAGE_NOTE_TCP, struct image_tcp, &q->tcp_count);
	q->made = xcalloc(q->count, sizeof(*q->made));
	for (size_t i = 0; i < q->count; i++)
		q->made[i].fd = q->made[i].other = q->made[i].sender = -1;
	for (size_t n = 1; n <= q->count; n++)
		if (check_family(&q->s[n - 1], e))
			return -1;
	for (size_t n = 1; n <= q->count; n++)
		if (socket_has_trait(&q->s[n - 1], SOCKET_IS_FIRST) && socket_make(q, n, e))
			return -1;
	/* Then connections: a port that somebody listens at cannot be had for them. */
	for (size_t n = 1; n <= q->count; n++)
		if (socket_is_tcp(&q->s[n - 1]) &&
			q->s[n - 1].state != IMAGE_SOCKET_LISTENING && socket_make(q, n, e))
			return -1;
	return 0;
}

/* ---- when all are there ---- */

static int connect_to_name(struct socket_restore *q, size_t number, struct err *e)
{
	static const struct sockaddr nothing = {.sa_family = AF_UNSPEC};
	const struct image_socket *s = &q->s[number - 1];
	const struct socket_made *made = &q->made[number - 1];
	cleanup_buf struct buf name = {0};

	if (s->type == SOCK_STREAM || s->type == SOCK_SEQPACKET ||
		s->state == IMAGE_SOCKET_ENDED)
		return 0;
	if (s->state != IMAGE_SOCKET_CONNECTED)
		return made->pair && connect(made->fd, &nothing, sizeof(nothing))
			       ? err_set(e, errno, "cannot disconnect a socket")
			       : 0;
	if (s->peer && socket_family_of(s)->connect_peer)
		return socket_family_of(s)->connect_peer(q, number, e);
	if (!connect(made->fd, (const struct sockaddr *)s->peer_name, s->peer_name_size))
		return 0;
	socket_name_show(s->peer_name, s->peer_name_size, &name);
	return err_set(e, errno, "cannot connect a socket to %.*s", (int)name.len,
		(const char *)name.data);
}

static int connect_waiting(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	struct socket_as_creator as = {.pid = s->cred_pid,
		.has_user = s->flags & IMAGE_SOCKET_CRED,
		.uid = s->cred_uid,
		.gid = s->cred_gid};

	return socket_family_of(s)->connect_waiting(q, number, &as, e);
}

static int compare_places(const void *a, const void *b)
{
	const struct image_socket *x = *(const struct image_socket *const *)a;
	const struct image_socket *y = *(const struct image_socket *const *)b;

	return x->backlog < y->backlog ? -1 : x->backlog > y->backlog;
}

/* In the order in which they came. */
static int fill_backlog(struct socket_restore *q, size_t listener, struct err *e)
{
	cleanup_buf struct buf waiting = {0}; /* const struct image_socket * */
	const struct image_socket *l = &q->s[listener - 1];

	if (l->state != IMAGE_SOCKET_LISTENING)
		return 0;
	for (size_t i = 0; i < q->count; i++) {
		const struct image_socket *s = &q->s[i];

		if (s->state == IMAGE_SOCKET_WAITING && s->listener == listener)
			buf_push(&waiting, const struct image_socket *, &s);
	}
	if (waiting.len)
		qsort(waiting.data, buf_count(&waiting, void *), sizeof(void *),
			compare_places);
	for (size_t i = 0; i < buf_count(&waiting, void *); i++) {
		const struct image_socket *s =
			*buf_at(&waiting, const struct image_socket *, i);

		if (connect_waiting(q, s - q->s + 1, e))
			return -1;
	}
	return 0;
}

/* listen(2) may have been called again, with less room than is taken already. */
uint32_t socket_backlog_needed(const struct socket_restore *q, size_t listener)
{
	uint32_t waiting = socket_waiting_at(q->s, q->count, listener);

	return waiting > q->s[listener - 1].backlog ? waiting : q->s[listener - 1].backlog;
}

static int set_backlog(struct socket_restore *q, size_t listener, struct err *e)
{
	const struct image_socket *s = &q->s[listener - 1];

	if (s->state != IMAGE_SOCKET_LISTENING ||
		socket_backlog_needed(q, listener) == s->backlog)
		return 0;
	return socket_family_of(s)->listen(q, listener, s->backlog, e);
}

/* The other end goes, as it did. */
static int end_other(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	const struct socket_family *f = socket_family_of(s);
	struct socket_made *made = &q->made[number - 1];
	bool reset = s->flags & (IMAGE_SOCKET_RESET | IMAGE_SOCKET_DEAD);
	socklen_t size = sizeof(int);
	int error;

	if (made->other < 0)
		return 0;
	if (reset && f->reset && f->reset(q, number, e))
		return -1;
	close(made->other);
	made->other = -1;
	if (s->flags & IMAGE_SOCKET_DEAD && !(s->flags & IMAGE_SOCKET_RESET))
		(void)getsockopt(made->fd, SOL_SOCKET, SO_ERROR, &error, &size); /* fetch it */
	return 0;
}

static int shut_down(struct socket_restore *q, size_t number, struct err *e)
{
	static const int how[] = {0, SHUT_RD, SHUT_WR, SHUT_RDWR};
	const struct image_socket *s = &q->s[number - 1];
	int fd = q->made[number - 1].fd;

	if (!(s->shutdown & 3) ||
		(s->state == IMAGE_SOCKET_ENDED && socket_has_trait(s, SOCKET_SHUT_BY_END) &&
			s->type != SOCK_DGRAM))
		return 0;
	/* Of an unconnected one, it is done and complained of (inet_shutdown()). */
	if (shutdown(fd, how[s->shutdown & 3]) && errno != ENOTCONN)
		return err_set(e, errno, "cannot shut a socket down");
	return 0;
}

static int set_options(struct socket_restore *q, size_t number, struct err *e)
{
	const struct image_socket *s = &q->s[number - 1];
	const struct socket_family *f = socket_family_of(s);

	if (f->before_options && f->before_options(q, number, e))
		return -1;
	return socket_options_set(q->made[number - 1].fd, &q->options[s->first_option],
		s->option_count, false, e);
}

static int finish_socket(struct socket_restore *q, size_t number, struct err *e)
{
	const struct socket_family *f = socket_family_of(&q->s[number - 1]);

	return f->finish ? f->finish(q, number, e) : 0;
}

static int for_each_socket(struct socket_restore *q,
	int (*action)(struct socket_restore *q, size_t number, struct err *e), struct err *e)
{
	for (size_t n = 1; n <= q->count; n++)
		if (action(q, n, e)) {
			const struct image_socket *s = &q->s[n - 1];
			cleanup_buf struct buf name = {0};

			socket_show_name(s, &name);
			return err_prefix(
				e, "socket %.*s", (int)name.len, (const char *)name.data);
		}
	return 0;
}

static int hand_kept_over(struct socket_restore *q, struct err *e)
{
	cleanup_buf struct buf fds = {0};

	for (size_t n = 1; n <= q->count; n++)
		if (socket_find_kept(q, n))
			buf_push(&fds, int, &q->made[n - 1].fd);
	return socket_kept_hand_over(q->r->options->kept, fds.data, buf_count(&fds, int), e);
}

int socket_restore_finish(struct fd_restore *r, struct err *e)
{
	struct socket_restore *q = r->sockets;

	/* A connected socket takes nothing from others. */
	return for_each_socket(q, socket_deliver, e) ||
			       for_each_socket(q, connect_to_name, e) ||
			       for_each_socket(q, fill_backlog, e) ||
			       for_each_socket(q, set_backlog, e) ||
			       for_each_socket(q, end_other, e) ||
			       for_each_socket(q, shut_down, e) ||
			       for_each_socket(q, set_options, e) ||
			       for_each_socket(q, finish_socket, e) || hand_kept_over(q, e)
		       ? -1
		       : 0;
}

void socket_restore_end(struct fd_restore *r)
{
	struct socket_restore *q = r->sockets;

	if (!q)
		return;
	if (q->roots)
		fd_remove_temporary_directories(r->checkpoint, r->options);
	for (size_t i = 0; i < q->count; i++) {
		util_close(&q->made[i].other);
		free(q->made[i].root);
	}
	free(q->made);
	free(q);
	r->sockets = NULL;
}
