/*
 * socket/inet_dump.c - TCP and UDP sockets at a checkpoint.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "supervisor/fd/objects_dump.h"
#include "supervisor/socket/multicast.h"
#include "supervisor/socket/connection_block.h"
#include "supervisor/socket/sock_diag.h"
#include "supervisor/socket/socket_families.h"
#include "supervisor/socket/socket_options.h"
#include "supervisor/socket/sockets_dump.h"
#include "supervisor/socket/tcp_arrival.h"
#include "supervisor/socket/tcp_repair.h"
#include "supervisor/target/process.h"
#include "supervisor/target/x86_64.h"

int socket_get_names(struct socket_dump *k, struct err *e)
{
	socklen_t size = sizeof(k->s.name);

	if (getsockname(k->fd, (struct sockaddr *)k->s.name, &size))
		return err_set(e, errno, "cannot query its name");
	k->s.name_size = socket_port(k->s.name) ? size : 0;
	size = sizeof(k->s.peer_name);
	if (!getpeername(k->fd, (struct sockaddr *)k->s.peer_name, &size))
		k->s.peer_name_size = size;
	return 0;
}

static short poll_now(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLPRI | POLLRDHUP};

	return poll(&p, 1, 0) == 1 ? p.revents : 0;
}

/* ---- look ---- */

/* What shutdown(2) did, not what came from the other end. */
static uint32_t shut_down(int state, short events)
{
	bool ended_by_other = state == CLOSE_WAIT || state == LAST_ACK || state == CLOSING;
	uint32_t how = 0;

	if (events & POLLRDHUP && !ended_by_other)
		how |= 1;
	if (state == FIN_WAIT1 || state == FIN_WAIT2 || state == CLOSING || state == LAST_ACK)
		how |= 2;
	return how;
}

/* Of errors, of when something was sent, of whose memory is free again: they cannot be looked
 * at but by taking them. */
static int refuse_reports(struct err *e)
{
	return err_with(
		e, ERR_TRY_AGAIN, "reports wait in it (MSG_ERRQUEUE), which is not supported");
}

static int being_made(struct err *e)
{
	return err_with(e, ERR_TRY_AGAIN,
		"its connection is being made (connect(2)): it can be saved when that is done "
		"or has failed");
}

/* @t was stopped in connect(2) with socket @inode. */
static bool is_connecting(const struct thread *t, uint64_t inode)
{
	cleanup_free char *path = NULL, *link = NULL, *wanted = NULL;

	if (!x86_64_in_syscall(&t->regs) || x86_64_syscall_number(&t->regs) != SYS_connect)
		return false;
	path = xasprintf("/proc/%d/fd/%d", t->tracee.tid, (int)x86_64_syscall_arg(&t->regs, 0));
	link = read_link(path, NULL);
	wanted = xasprintf("socket:[%" PRIu64 "]", inode);
	return link && !strcmp(link, wanted);
}

/* It has come about since a thread was stopped that waits for it. Entered again after a
 * restart, that call would find the socket connected (EISCONN). */
static bool is_waited_for(const struct fd_dump *d, uint64_t inode)
{
	for (size_t i = 0; i < d->tree->living; i++) {
		const struct process *p = d->tree->processes[i];

		for (size_t n = 0; n < p->thread_count; n++)
			if (is_connecting(&p->threads[n], inode))
				return true;
	}
	return false;
}

static int look_at_tcp(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	short events = poll_now(k->fd);
	struct tcp_info info;

	if (socket_tcp_info(k->fd, &info, e))
		return -1;
	if (events & POLLPRI)
		return err_set(
			e, 0, "urgent data (MSG_OOB) waits in it, which is not supported");
	if (events & POLLERR)
		k->s.flags |= IMAGE_SOCKET_RESET;
	if (k->s.protocol != IPPROTO_TCP && info.tcpi_state != LISTEN &&
		(info.tcpi_state != CLOSED || events & (POLLRDHUP | POLLERR)))
		return err_set(e, 0,
			"it is a connection of Multipath TCP, which is not supported; the "
			"program can be made to use plain TCP (of Go: GODEBUG=multipathtcp=0)");
	switch (info.tcpi_state) {
	case LISTEN:
		k->s.state = IMAGE_SOCKET_LISTENING;
		/* include/uapi/linux/tcp.h does not tell: net/ipv4/tcp.c, tcp_get_info() */
		k->s.backlog = info.tcpi_sacked;
		k->waiting_count = info.tcpi_unacked;
		return 0;
	case SYN_SENT:
	case SYN_RECV:
		return being_made(e);
	case CLOSED:
	case TIME_WAIT:
		k->s.state = IMAGE_SOCKET_OPEN;
		/* A socket that was connected once can never be again. */
		if (events & (POLLRDHUP | POLLERR)) {
			if (is_waited_for(d, k->inode))
				return being_made(e);
			k->s.state = IMAGE_SOCKET_ENDED;
			k->s.flags |= IMAGE_SOCKET_DEAD;
		}
		return 0;
	default:
		if (is_waited_for(d, k->inode))
			return being_made(e);
		if (events & POLLERR)
			return refuse_reports(e);
		k->s.state = IMAGE_SOCKET_CONNECTED;
		k->closed_end = info.tcpi_state == CLOSE_WAIT || info.tcpi_state == LAST_ACK;
		k->s.shutdown = shut_down(info.tcpi_state, events);
		return 0;
	}
}

/* Whether nothing can be sent any more: asked by a byte that is nowhere, as the kernel looks at
 * that before it copies anything (sock_alloc_send_pskb()). An error that waits would be taken,
 * and without a port it would get one. */
static bool cannot_send(const struct socket_dump *k, short events)
{
	struct sockaddr_storage to = {0};
	struct iovec nowhere = {(void *)1, 1};
	struct msghdr h = {.msg_iov = &nowhere, .msg_iovlen = 1};

	if (events & POLLERR || !k->s.name_size)
		return false;
	if (!k->s.peer_name_size) {
		memcpy(&to, k->s.name, k->s.name_size);
		h.msg_name = &to;
		h.msg_namelen = k->s.name_size;
	}
	return sendmsg(k->fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EPIPE;
}

static int get_option(int fd, int level, int name)
{
	socklen_t size = sizeof(int);
	int value = 0;

	(void)getsockopt(fd, level, name, &value, &size); /* not every socket has it */
	return value;
}

/* Without these an error is all that can wait. */
static bool wants_reports(int fd)
{
	return get_option(fd, IPPROTO_IP, IP_RECVERR) ||
	       get_option(fd, IPPROTO_IPV6, IPV6_RECVERR) ||
	       get_option(fd, SOL_SOCKET, SO_TIMESTAMPING) ||
	       get_option(fd, SOL_SOCKET, SO_ZEROCOPY);
}

static int look_at_udp(struct socket_dump *k, struct err *e)
{
	short events = poll_now(k->fd);
	int unsent;

	k->s.state = k->s.peer_name_size ? IMAGE_SOCKET_CONNECTED : IMAGE_SOCKET_OPEN;
	/* A datagram that is to become longer yet (MSG_MORE, UDP_CORK), or is just leaving. */
	if (ioctl(k->fd, SIOCOUTQ, &unsent))
		return err_set(e, errno, "cannot query how much it has not sent yet");
	if (unsent)
		return err_with(e, ERR_TRY_AGAIN,
			"it holds a datagram that is not sent yet (MSG_MORE)");
	if (events & POLLERR && wants_reports(k->fd))
		return refuse_reports(e);
	if (events & POLLRDHUP)
		k->s.shutdown |= 1;
	if (cannot_send(k, events))
		k->s.shutdown |= 2;
	return 0;
}

int socket_inet_look(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	if (socket_is_raw(&k->s))
		return socket_raw_look(d, k, e);
	if (socket_get_names(k, e))
		return -1;
	if (k->s.type == SOCK_STREAM)
		return look_at_tcp(d, k, e);
	return look_at_udp(k, e) || socket_multicast_save(k->fd, k->s.family, &k->options, e)
		       ? -1
		       : 0;
}

/* ---- relate ---- */

static bool are_ends(const struct socket_dump *a, const struct socket_dump *b)
{
	return socket_is_tcp(&a->s) && socket_is_tcp(&b->s) && a->s.name_size &&
	       b->s.name_size && a->s.peer_name_size && b->s.peer_name_size &&
	       socket_same_address(a->s.name, b->s.peer_name) &&
	       socket_same_address(b->s.name, a->s.peer_name);
}

static uint32_t find_end(const struct fd_dump *d, const struct socket_dump *k)
{
	for (uint32_t n = 1; n <= socket_dump_count(d); n++)
		if (are_ends(k, socket_dump_at(d, n)))
			return n;
	return 0;
}

static void show_peer(const struct socket_dump *k, struct buf *out)
{
	socket_name_show(k->s.peer_name, k->s.peer_name_size, out);
	buf_add(out, "", 1);
}

/* From here on nothing moves in it. */
static int keep_connection(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	if (!d->block)
		d->block = xcalloc(1, sizeof(*d->block));
	if ((!d->block->netlink && connection_block_begin(d->block, NULL, e)) ||
		connection_block_add(d->block, k->s.name, k->s.peer_name, e))
		return -1;
	k->kept = true;
	return 0;
}

int socket_inet_save_kept(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	struct fd_object *o = fd_object_at(d, k->object);

	/* Something may have come before it stood still. */
	if (look_at_tcp(d, k, e))
		return -1;
	if (k->s.state != IMAGE_SOCKET_CONNECTED || k->closed_end || k->s.shutdown ||
		k->s.flags & IMAGE_SOCKET_RESET)
		return err_set(e, 0, "it is being closed, and cannot be kept");
	k->tcp.socket = socket_dump_find(d, k->inode);
	if (socket_repair_save(k->fd, &k->tcp, &o->bytes, e))
		return -1;
	o->o.size = o->bytes.len;
	return 0;
}

/* A connection to the outside. */
static int relate_outside(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	cleanup_buf struct buf peer = {0};

	if (d->tcp == FD_TCP_RESET) {
		k->s.state = IMAGE_SOCKET_ENDED;
		k->s.flags |= IMAGE_SOCKET_RESET | IMAGE_SOCKET_DEAD;
		return 0;
	}
	if (d->tcp == FD_TCP_KEEP)
		return keep_connection(d, k, e);
	show_peer(k, &peer);
	return err_set(e, 0,
		"it is connected to %s, which is not being saved (--tcp=reset would end the "
		"connection at a restart)",
		(const char *)peer.data);
}

static uint32_t find_listener(const struct fd_dump *d, const struct socket_dump *k)
{
	for (uint32_t n = 1; n <= socket_dump_count(d); n++) {
		const struct socket_dump *l = socket_dump_at(d, n);

		if (l->s.state == IMAGE_SOCKET_LISTENING && socket_is_tcp(&l->s) &&
			socket_port(l->s.name) == socket_port(k->s.peer_name) &&
			(socket_is_any_address(l->s.name) ||
				socket_same_address(l->s.name, k->s.peer_name)))
			return n;
	}
	return 0;
}

static int relate_waiting(
	struct fd_dump *d, struct socket_dump *k, const struct tcp_facts *f, struct err *e)
{
	struct socket_dump *l;
	int unsent;

	k->s.listener = find_listener(d, k);
	if (!k->s.listener)
		return relate_outside(d, k, e);
	/* While there is no room in the backlog, the other end takes nothing. */
	if (ioctl(k->fd, SIOCOUTQ, &unsent))
		return err_set(e, errno, "cannot query how much it has not sent yet");
	if (f->unread || unsent || k->s.shutdown)
		return err_with(
			e, ERR_TRY_AGAIN, "it waits to be accepted, and has sent already");
	l = socket_dump_at(d, k->s.listener);
	k->s.state = IMAGE_SOCKET_WAITING;
	k->s.backlog = l->waiting_found++;
	return 0;
}

static int relate_tcp(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	struct sockaddr_storage name = {0}, peer = {0};
	struct tcp_facts f;

	k->s.peer = find_end(d, k);
	if (k->s.peer)
		return 0;
	memcpy(&name, k->s.name, k->s.name_size);
	memcpy(&peer, k->s.peer_name, k->s.peer_name_size);
	if (socket_diag_tcp(&peer, &name, &f, e))
		return -1;
	if (f.found && f.inode)
		return relate_outside(d, k, e);
	if (f.found && f.orphan)
		k->unsent_by_orphan = f.unsent;
	else if (f.found && !k->closed_end)
		return relate_waiting(d, k, &f, e);
	if (!f.found && !socket_is_local(k->s.peer_name, k->s.peer_name_size))
		return relate_outside(d, k, e);
	/* The end of a connection that was closed may still be under way. */
	k->orphaned = !k->closed_end;
	k->halved = !f.found;
	k->s.state = IMAGE_SOCKET_ENDED;
	return 0;
}

/* The other end may have gone at this moment. Or it is not made yet: the kernel has answered by
 * a SYN cookie, and drops what comes after that while the backlog is full. */
static int refuse_half(const struct fd_dump *d, const struct socket_dump *k, struct err *e)
{
	struct tcp_info info;

	if (socket_tcp_info(k->fd, &info, e))
		return -1;
	if (socket_has_end(&info))
		return 0;
	if (find_listener(d, k))
		return err_with(e, ERR_TRY_AGAIN,
			"it is connected to a listening socket that had no room for it yet "
			"(its backlog, see listen(2))");
	return err_with(e, ERR_TRY_AGAIN, "its other end is gone, and it has not been told");
}

/* When the other end has been closed: what the kernel sends for it all the same. */
static int await_last_arrival(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	if (k->halved && refuse_half(d, k, e))
		return -1;
	if (socket_await_arrival(-1, k->fd, k->unsent_by_orphan, e) || look_at_tcp(d, k, e))
		return -1;
	k->s.state = IMAGE_SOCKET_ENDED;
	return 0;
}

int socket_inet_await_arrival(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	if (k->s.peer)
		return socket_await_arrival(socket_dump_at(d, k->s.peer)->fd, k->fd, 0, e);
	return k->orphaned ? await_last_arrival(d, k, e) : 0;
}

/* Whether a datagram from there can be sent again. */
static int check_source(const struct fd_dump *d, const struct socket_dump *k,
	const struct image_message *m, struct err *e)
{
	cleanup_buf struct buf from = {0};

	for (uint32_t n = 1; n <= socket_dump_count(d); n++) {
		const struct socket_dump *o = socket_dump_at(d, n);

		if (o->s.family == k->s.family && o->s.type == SOCK_DGRAM &&
			o->s.protocol == k->s.protocol && o->s.name_size &&
			socket_port(o->s.name) == socket_port(m->name))
			return 0;
	}
	if (socket_is_free(m->name, m->name_size, SOCK_DGRAM, k->s.protocol))
		return 0;
	socket_name_show(m->name, m->name_size, &from);
	buf_add(&from, "", 1);
	return err_set(e, 0, "a datagram from %s waits in it, which is not being saved",
		(const char *)from.data);
}

static int relate_udp(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	for (size_t i = 0; i < buf_count(&k->messages, struct image_message); i++)
		if (check_source(d, k, buf_at(&k->messages, struct image_message, i), e))
			return -1;
	return 0;
}

int socket_inet_relate(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	if (k->s.type != SOCK_STREAM)
		return relate_udp(d, k, e);
	return k->s.state == IMAGE_SOCKET_CONNECTED ? relate_tcp(d, k, e) : 0;
}

/* One connection may have come to any socket that listens at its port (SO_REUSEPORT). */
int socket_inet_check_backlog(struct fd_dump *d, struct socket_dump *k, struct err *e)
{
	uint32_t waiting = 0, found = 0;

	if (!k->waiting_count || d->tcp == FD_TCP_RESET)
		return 0;
	for (uint32_t n = 1; n <= socket_dump_count(d); n++) {
		const struct socket_dump *l = socket_dump_at(d, n);

		if (!socket_is_tcp(&l->s) || socket_port(l->s.name) != socket_port(k->s.name))
			continue;
		waiting += l->waiting_count;
		found += l->waiting_found;
	}
	if (waiting <= found)
		return 0;
	return err_with(e, ERR_TRY_AGAIN,
		"a connection waits to be accepted whose other end is of another program, or "
		"closed already");
}
