/*
 * tcp_repair.c - the queues and options of a connection read in repair mode, and written to a
 * new one.
 */
#include "supervisor/socket/tcp_repair.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "supervisor/socket/option_guard.h"
#include "supervisor/socket/socket_options.h"

#define REPAIR_OFF          0
#define REPAIR_ON           1
#define REPAIR_OFF_NO_PROBE (-1)

/* Kinds of options in segments (RFC 9293, 7323, 2018). */
#define OPTION_MSS        2
#define OPTION_WINDOW     3
#define OPTION_SACK       4
#define OPTION_TIMESTAMPS 8

static int set_repair(int fd, int name, int value)
{
	return setsockopt(fd, IPPROTO_TCP, name, &value, sizeof(value));
}

static int get_repair(int fd, int name, uint32_t *value)
{
	socklen_t size = sizeof(*value);

	return getsockopt(fd, IPPROTO_TCP, name, value, &size);
}

/* ---- saving ---- */

static int read_sent(int fd, struct image_tcp *t, struct buf *bytes)
{
	int unacknowledged;
	ssize_t n;

	if (ioctl(fd, SIOCOUTQ, &unacknowledged))
		return -1;
	t->sent_size = unacknowledged;
	if (!unacknowledged)
		return 0;
	n = recv(fd, buf_grow(bytes, unacknowledged), unacknowledged, MSG_PEEK | MSG_DONTWAIT);
	if (n >= 0 && n != unacknowledged)
		errno = EBUSY; /* it has shrunk: the other end is heard after all */
	return n == unacknowledged ? 0 : -1;
}

/* While nothing comes or leaves. */
static int read_all_of(int fd, struct image_tcp *t, struct buf *bytes)
{
	struct tcp_info info = {0};
	socklen_t size = sizeof(info), window = sizeof(t->window);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) ||
		set_repair(fd, TCP_REPAIR_QUEUE, TCP_RECV_QUEUE) ||
		get_repair(fd, TCP_QUEUE_SEQ, &t->receive_seq) ||
		set_repair(fd, TCP_REPAIR_QUEUE, TCP_SEND_QUEUE) ||
		get_repair(fd, TCP_QUEUE_SEQ, &t->send_seq) || read_sent(fd, t, bytes) ||
		set_repair(fd, TCP_REPAIR_QUEUE, TCP_NO_QUEUE) ||
		get_repair(fd, TCP_MAXSEG, &t->mss) ||
		get_repair(fd, TCP_TIMESTAMP, &t->timestamp) ||
		getsockopt(fd, IPPROTO_TCP, TCP_REPAIR_WINDOW, t->window, &window))
		return -1;
	t->options =
		info.tcpi_options & (TCPI_OPT_TIMESTAMPS | TCPI_OPT_SACK | TCPI_OPT_WSCALE);
	t->scale = info.tcpi_snd_wscale | info.tcpi_rcv_wscale << 16;
	return 0;
}

int socket_repair_save(int fd, struct image_tcp *t, struct buf *bytes, struct err *e)
{
	struct socket_guard g = {.socket = fd, .count = 1};
	int failed, code;

	g.options[0].level = IPPROTO_TCP;
	g.options[0].name = TCP_REPAIR;
	g.options[0].value = REPAIR_OFF_NO_PROBE;
	/* Which that would leave at 0. */
	if (socket_guard_note(&g, SOL_SOCKET, SO_REUSEADDR, e) || socket_guard_begin(&g, e))
		return -1;
	if (set_repair(fd, TCP_REPAIR, REPAIR_ON)) {
		code = errno;
		/* Without the privilege it cannot be put back either. */
		(void)socket_guard_end(&g, NULL);
		return err_set(e, code, "cannot keep a connection to the outside (TCP_REPAIR)");
	}
	failed = read_all_of(fd, t, bytes);
	code = errno;
	if (socket_guard_end(&g, e))
		return -1;
	return failed ? err_set(e, code, "cannot read how far the connection has come") : 0;
}

void socket_repair_enter(int fd)
{
	(void)set_repair(fd, TCP_REPAIR, REPAIR_ON); /* at worst the other end is told */
}

int socket_repair_leave(int fd, bool probe, struct err *e)
{
	socklen_t size = sizeof(int);
	int reuse;

	if (getsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, &size) ||
		set_repair(fd, TCP_REPAIR, probe ? REPAIR_OFF : REPAIR_OFF_NO_PROBE) ||
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, size))
		return err_set(e, errno, "cannot resume a connection to the outside");
	return 0;
}

/* ---- restart ---- */

static int put_into_queue(int fd, int queue, const char *data, size_t size)
{
	struct socket_room room;
	ssize_t n = 1;

	if (set_repair(fd, TCP_REPAIR_QUEUE, queue))
		return -1;
	room = socket_room_make(fd, queue == TCP_SEND_QUEUE ? SO_SNDBUF : SO_RCVBUF, size);
	for (; size && n > 0; size -= n > 0 ? n : 0, data += n > 0 ? n : 0)
		n = send(fd, data, size, MSG_DONTWAIT);
	socket_room_end(&room);
	return size ? -1 : 0;
}

static int set_options(int fd, const struct image_tcp *t)
{
	struct tcp_repair_opt options[4];
	int count = 0;

	if (t->options & TCPI_OPT_SACK)
		options[count++] = (struct tcp_repair_opt){OPTION_SACK, 0};
	if (t->options & TCPI_OPT_WSCALE)
		options[count++] = (struct tcp_repair_opt){OPTION_WINDOW, t->scale};
	if (t->options & TCPI_OPT_TIMESTAMPS)
		options[count++] = (struct tcp_repair_opt){OPTION_TIMESTAMPS, 0};
	options[count++] = (struct tcp_repair_opt){OPTION_MSS, t->mss};
	return setsockopt(
		fd, IPPROTO_TCP, TCP_REPAIR_OPTIONS, options, count * sizeof(options[0]));
}

static int repair_connection(int fd, const struct image_socket *s, const struct image_tcp *t,
	const struct buf *bytes)
{
	size_t unread = bytes->len - t->sent_size;
	const char *data = bytes->data;

	return set_repair(fd, TCP_REPAIR, REPAIR_ON) ||
	       bind(fd, (const struct sockaddr *)s->name, s->name_size) ||
	       set_repair(fd, TCP_REPAIR_QUEUE, TCP_RECV_QUEUE) ||
	       set_repair(fd, TCP_QUEUE_SEQ, t->receive_seq - unread) ||
	       set_repair(fd, TCP_REPAIR_QUEUE, TCP_SEND_QUEUE) ||
	       set_repair(fd, TCP_QUEUE_SEQ, t->send_seq - t->sent_size) ||
	       connect(fd, (const struct sockaddr *)s->peer_name, s->peer_name_size) ||
	       set_options(fd, t) || set_repair(fd, TCP_TIMESTAMP, t->timestamp) ||
	       put_into_queue(fd, TCP_RECV_QUEUE, data, unread) ||
	       put_into_queue(fd, TCP_SEND_QUEUE, data + unread, t->sent_size) ||
	       set_repair(fd, TCP_REPAIR_QUEUE, TCP_NO_QUEUE) ||
	       setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_WINDOW, t->window, sizeof(t->window));
}

int socket_repair_restore(int fd, const struct image_socket *s, const struct image_tcp *t,
	const struct buf *bytes, struct err *e)
{
	if (t->sent_size > bytes->len)
		return err_set(e, 0, "the image is damaged: bytes that were sent");
	return repair_connection(fd, s, t, bytes)
		       ? err_set(e, errno,
				 "cannot take up a connection to the outside "
				 "(TCP_REPAIR)")
		       : 0;
}
