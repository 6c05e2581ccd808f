/*
 * MSG_PEEK reads from where SO_PEEK_OFF says (man 7 socket); the program's own setting of it is
 * put back by a guard. Only a stream's bytes that all belong together can be had without, as those
 * of TCP always do: it has had the option since Linux 6.9 (over IPv6 since 6.11).
 */
#include "supervisor/socket/queue_peek.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <linux/sockios.h>

#include "supervisor/socket/in_pid_namespace.h"
#include "supervisor/socket/option_guard.h"

#ifndef SCM_PIDFD
#define SCM_PIDFD 0x04
#endif

#define CONTROL_SIZE 8192

struct peek {
	int fd;
	pid_t in;
	bool stream, connection;
	struct socket_peeked m;
	struct buf data;
	bool cut; /* the message is longer than the room for it */
};

static void close_fds(struct socket_peeked *m)
{
	for (int i = 0; i < m->fd_count; i++)
		close(m->fds[i]);
	m->fd_count = 0;
}

static void take_control(struct socket_peeked *m, struct msghdr *h)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		size_t size = c->cmsg_len - CMSG_LEN(0);
		int pidfd;

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS) {
			m->fd_count = size / sizeof(int);
			memcpy(m->fds, CMSG_DATA(c), m->fd_count * sizeof(int));
		} else if (c->cmsg_type == SCM_CREDENTIALS) {
			m->has_cred = true;
			memcpy(&m->cred, CMSG_DATA(c), sizeof(m->cred));
		} else if (c->cmsg_type == SCM_PIDFD) {
			memcpy(&pidfd, CMSG_DATA(c), sizeof(pidfd));
			util_close(&pidfd);
		}
	}
}

static int ask_sender(void *arg)
{
	_Alignas(struct cmsghdr) char control[CONTROL_SIZE];
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr h = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct ucred cred;

	if (recvmsg(*(int *)arg, &h, MSG_PEEK | MSG_DONTWAIT) < 0)
		return -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			return cred.pid;
		}
	return -1;
}

/* Look at up to @room bytes. 1: found, 0: nothing there. */
static int look_at_queue(struct peek *p, size_t room, struct err *e)
{
	_Alignas(struct cmsghdr) char control[CONTROL_SIZE];
	struct iovec iov;
	struct msghdr h = {
		.msg_name = &p->m.name,
		.msg_namelen = sizeof(p->m.name),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	memset(&p->m, 0, sizeof(p->m));
	p->data.len = 0;
	iov = (struct iovec){buf_grow(&p->data, room + 1), room};
	n = recvmsg(
		p->fd, &h, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_TRUNC * !p->stream);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < 0)
		return err_set(e, errno, "cannot read what waits in it");
	take_control(&p->m, &h);
	if (h.msg_flags & MSG_CTRUNC) {
		close_fds(&p->m);
		return err_set(
			e, 0, "cannot get the descriptors in a message that waits in it");
	}
	p->m.data = p->data.data;
	p->m.size = n;
	p->m.name_size = h.msg_namelen;
	p->cut = (size_t)n > room;
	return 1;
}

static int peek_at(struct peek *p, size_t offset, size_t room, struct err *e)
{
	int value = offset, r, pid;

	if (setsockopt(p->fd, SOL_SOCKET, SO_PEEK_OFF, &value, sizeof(value)))
		return err_set(
			e, errno, "cannot examine the rest of its contents (SO_PEEK_OFF)");
	r = look_at_queue(p, room, e);
	if (r <= 0 || !p->m.has_cred || socket_is_our_namespace(p->in))
		return r;
	/* An empty message shows but once. */
	p->m.cred.pid = 0;
	if (!p->m.size)
		return r;
	/* The offset has moved on by itself. */
	if (setsockopt(p->fd, SOL_SOCKET, SO_PEEK_OFF, &value, sizeof(value))) {
		close_fds(&p->m);
		return err_set(e, errno, "cannot examine it again (SO_PEEK_OFF)");
	}
	pid = socket_ask_in_pid_namespace(p->in, ask_sender, &p->fd);
	p->m.cred.pid = pid > 0 ? pid : 0;
	return r;
}

/*
 * Of the @size bytes at @offset the last come with descriptors: how many bytes are before
 * those, which the kernel puts in front? It copies them packet by packet, and reports
 * descriptors when one with them was copied (net/unix/af_unix.c, unix_stream_read_generic()).
 * With the last byte of the last packet it runs into a hole here, and returns what came before
 * that packet.
 */
static int find_before(
	struct peek *p, size_t offset, size_t size, size_t *before, struct err *e)
{
	size_t page = sysconf(_SC_PAGESIZE), room = align_up(size, page);
	char *map = mmap(
		NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int value = offset, code;
	ssize_t n;

	if (map == MAP_FAILED)
		return err_set(e, errno, "cannot map memory");
	if (mprotect(map + room, page, PROT_NONE)) {
		munmap(map, room + page);
		return err_set(e, errno, "cannot map memory");
	}
	n = setsockopt(p->fd, SOL_SOCKET, SO_PEEK_OFF, &value, sizeof(value))
		    ? -1
		    : recv(p->fd, map + room - (size - 1), size, MSG_PEEK | MSG_DONTWAIT);
	code = errno;
	munmap(map, room + page);
	*before = n > 0 ? n : 0;
	return n > 0 || (n < 0 && code == EFAULT)
		       ? 0
		       : err_set(e, code, "cannot find the descriptors in it");
}

/* Look at what comes next in a stream: bytes without descriptors, or all bytes that came with
 * some. */
static int look_next(struct peek *p, size_t offset, size_t total, struct err *e)
{
	int found = peek_at(p, offset, total - offset, e);
	size_t size = p->m.size, before = 0;

	if (found <= 0)
		return found < 0 ? -1 : err_set(e, 0, "it holds less than the kernel says");
	if (!p->m.fd_count || size <= 1)
		return 0;
	if (find_before(p, offset, size, &before, e))
		goto out_close;
	if (!before)
		return 0;
	close_fds(&p->m);
	if (peek_at(p, offset, before, e) <= 0)
		return err_set(e, 0, "cannot read the first bytes in it");
	/* A look to the very end of a packet shows what came with the next one. */
	close_fds(&p->m);
	return 0;

out_close:
	close_fds(&p->m);
	return -1;
}

static int peek_stream(struct peek *p, size_t total,
	int (*each)(void *context, const struct socket_peeked *m, struct err *e), void *context,
	struct err *e)
{
	for (size_t offset = 0; offset < total; offset += p->m.size)
		if (look_next(p, offset, total, e) || each(context, &p->m, e))
			return -1;
	return 0;
}

/* Sockets whose queues held empty messages: the kernel marks those as seen, and shows them no
 * more at an offset (net/core/datagram.c, skb->peeked). So they can be had once. */
static struct buf seen; /* uint64_t: inodes */

static bool was_seen(uint64_t inode)
{
	for (size_t i = 0; i < buf_count(&seen, uint64_t); i++)
		if (*buf_at(&seen, uint64_t, i) == inode)
			return true;
	return false;
}

static int peek_messages(struct peek *p, uint64_t inode, size_t total,
	int (*each)(void *context, const struct socket_peeked *m, struct err *e), void *context,
	struct err *e)
{
	size_t offset = 0, room = 65536;
	int found;

	while ((found = peek_at(p, offset, room, e)) > 0) {
		if (p->cut) {
			room = p->m.size;
			close_fds(&p->m);
			continue;
		}
		/* The end of a connection reads as an empty message, again and again. */
		if (p->connection && !p->m.size && offset >= total)
			return 0;
		if (!p->m.size && !was_seen(inode))
			buf_push(&seen, uint64_t, &inode);
		offset += p->m.size;
		if (each(context, &p->m, e))
			return -1;
	}
	return found;
}

/* What poll(2) says of @fd. */
static short poll_now(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1 ? p.revents : 0;
}

static int peek_guarded(struct peek *p, struct socket_guard *g, uint64_t inode, size_t total,
	int (*each)(void *context, const struct socket_peeked *m, struct err *e), void *context,
	struct err *e)
{
	int r;

	if (socket_guard_begin(g, e))
		return -1;
	r = p->stream ? peek_stream(p, total, each, context, e)
		      : peek_messages(p, inode, total, each, context, e);
	r |= socket_guard_end(g, r ? NULL : e);
	return r ? -1 : 0;
}

/* All of a stream at once, when nothing in it has to be told apart: 1, else 0. */
static int peek_plain(struct peek *p, size_t total, struct err *e)
{
	int r = look_at_queue(p, total, e);

	if (r > 0 && p->m.size == total && !p->m.fd_count && !p->m.has_cred)
		return 1;
	close_fds(&p->m);
	return r < 0 ? -1 : 0;
}

static bool has_peek_offset(int fd)
{
	int value;
	socklen_t size = sizeof(value);

	return !getsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &value, &size) || errno != EOPNOTSUPP;
}

static int peek_without_offset(struct peek *p, size_t total,
	int (*each)(void *context, const struct socket_peeked *m, struct err *e), void *context,
	struct err *e)
{
	int r = p->stream ? peek_plain(p, total, e) : 0;

	if (!r)
		return err_set(e, 0, "the kernel shows only the beginning of what waits in it");
	return r < 0 ? -1 : each(context, &p->m, e);
}

static int peek_queue(struct peek *p, uint64_t inode, short events,
	int (*each)(void *context, const struct socket_peeked *m, struct err *e), void *context,
	struct err *e)
{
	struct socket_guard g = {.socket = p->fd};
	int total = 0, r = 0;

	if ((p->stream || p->connection) && ioctl(p->fd, SIOCINQ, &total))
		return err_set(e, errno, "cannot query how much waits in it");
	if (!total && (p->stream || (p->connection && events & (POLLHUP | POLLERR))))
		return 0;
	/* Any look would fetch it. */
	if (!p->stream && events & POLLERR)
		return err_set(e, 0, "messages and an error wait in it");
	if (!p->stream && was_seen(inode))
		return err_set(
			e, 0, "it may hold empty messages, which can be peeked at only once");
	if (!has_peek_offset(p->fd))
		return peek_without_offset(p, total, each, context, e);
	if (socket_guard_note(&g, SOL_SOCKET, SO_PEEK_OFF, e))
		return -1;
	if (p->stream && g.options[0].value < 0)
		r = peek_plain(p, total, e);
	if (r)
		return r < 0 ? -1 : each(context, &p->m, e);
	return peek_guarded(p, &g, inode, total, each, context, e);
}

int socket_peek(int fd, uint64_t inode, pid_t in,
	int (*each)(void *context, const struct socket_peeked *m, struct err *e), void *context,
	struct err *e)
{
	short events = poll_now(fd);
	struct peek p = {.fd = fd, .in = in};
	socklen_t size = sizeof(int);
	int type, r;

	if (!(events & POLLIN))
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size))
		return err_set(e, errno, "cannot query its type");
	p.stream = type == SOCK_STREAM;
	p.connection = type == SOCK_SEQPACKET;
	r = peek_queue(&p, inode, events, each, context, e);
	buf_free(&p.data);
	return r;
}
