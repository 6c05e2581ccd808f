/*
 * The end that closes first is kept (TIME_WAIT), and a port with such a connection cannot be
 * bound unless all have said so before (SO_REUSEADDR). What ends it early is a reset from its
 * other end
 * ("TIME-WAIT assassination", RFC 1337; not with net.ipv4.tcp_rfc1337). Anybody on the machine
 * can have the kernel send that, with the right number: to who connects from there, the
 * remembered connection answers with an acknowledgement of what it has had, and that is reset
 * as it acknowledges nothing that has been sent.
 */
#include "supervisor/socket/time_wait_ports.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/util.h"
#include "supervisor/socket/socket_families.h"

#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51
#endif

/* As include/net/tcp_states.h has them. */
#define STATE_FIN_WAIT1 4
#define STATE_FIN_WAIT2 5
#define STATE_TIME_WAIT 6
#define STATE_LAST_ACK  9
#define STATE_CLOSING   11

/* What is sent may wait for its turn (softirq). A connection whose processes have just been killed takes a few
 * milliseconds to close, or 200 when a segment is lost. */
#define PASSES         5
#define CLOSING_PASSES 100
#define PAUSE_NS       10000000

struct past {
	struct sockaddr_storage local, remote;
	socklen_t size;
};

struct holders {
	struct buf past; /* struct past */
	bool closing; /* connections that no process has open, on their way to TIME_WAIT or to their end */
	bool others;
};

/* As the table has it: words of four bytes, each as a number. */
static bool read_address(
	const char *text, unsigned port, struct sockaddr_storage *out, socklen_t *size)
{
	struct sockaddr_in *v4 = (void *)out;
	struct sockaddr_in6 *v6 = (void *)out;
	uint32_t words[4];
	int count = 0;

	while (count < 4 && sscanf(&text[8 * count], "%8x", &words[count]) == 1)
		count++;
	memset(out, 0, sizeof(*out));
	v4->sin_family = count == 1 ? AF_INET : AF_INET6;
	v4->sin_port = htons(port); /* at the same place in both */
	memcpy(count == 1 ? (void *)&v4->sin_addr : &v6->sin6_addr, words, 4 * count);
	*size = count == 1 ? sizeof(*v4) : sizeof(*v6);
	return count == 1 || count == 4;
}

static bool is_closing(unsigned state, unsigned long inode)
{
	return !inode && (state == STATE_FIN_WAIT1 || state == STATE_FIN_WAIT2 ||
				 state == STATE_LAST_ACK || state == STATE_CLOSING);
}

/* Connections of @table, a file in /proc/net, that have local @port. */
static void find_holders(const char *table, unsigned port, struct holders *h)
{
	cleanup_file FILE *f = fopen(table, "re");
	unsigned local_port, remote_port, state;
	char line[512], local[33], remote[33];
	unsigned long inode;
	struct past p;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line,
			    " %*u: %32[0-9A-F]:%x %32[0-9A-F]:%x %x %*x:%*x %*x:%*x %*x %*u "
			    "%*u %lu",
			    local, &local_port, remote, &remote_port, &state, &inode) != 6 ||
			local_port != port)
			continue;
		if (is_closing(state, inode))
			h->closing = true;
		else if (state != STATE_TIME_WAIT)
			h->others = true;
		else if (read_address(local, local_port, &p.local, &p.size) &&
			 read_address(remote, remote_port, &p.remote, &p.size))
			buf_push(&h->past, struct past, &p);
	}
}

static void find_all(unsigned port, struct holders *h)
{
	memset(h, 0, sizeof(*h));
	find_holders("/proc/net/tcp", port, h);
	find_holders("/proc/net/tcp6", port, h);
}

bool time_wait_holds_port(unsigned port)
{
	struct holders h;
	bool held;

	find_all(port, &h);
	held = (h.past.len || h.closing) && !h.others;
	buf_free(&h.past);
	return held;
}

/* ---- share ---- */

/* Whether the kernel may choose @port for a socket that asks for no port. */
static bool is_ephemeral(unsigned port)
{
	cleanup_file FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	unsigned low, high;

	return f && fscanf(f, "%u %u", &low, &high) == 2 && port >= low && port <= high;
}

bool past_connections_share(int fd, const uint8_t *name, uint32_t size)
{
	uint32_t port = socket_port(name), range = port | port << 16;
	struct sockaddr_storage any = {0};
	int on = 1;

	if (!is_ephemeral(port) ||
		setsockopt(fd, IPPROTO_IP, IP_LOCAL_PORT_RANGE, &range, sizeof(range)) ||
		setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)))
		return false;
	memcpy(&any, name, size);
	((struct sockaddr_in *)&any)->sin_port = 0; /* at the same place in IPv6 addresses */
	return !bind(fd, (struct sockaddr *)&any, size);
}

/* ---- forget ---- */

/* A program that has begun to listen there meanwhile is told at once that nothing was meant. */
static void reset_connection(const struct past *p)
{
	const struct linger now = {.l_onoff = 1};
	const struct sockaddr *from = (const void *)&p->remote, *to = (const void *)&p->local;
	int fd;

	if (!socket_is_local((const void *)&p->remote, p->size))
		return;
	fd = socket(from->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	/* What fails is found out by looking again. */
	if (past_connections_share(fd, (const void *)from, p->size) || !bind(fd, from, p->size))
		(void)!connect(fd, to, p->size);
	close(fd);
}

static bool any_is_local(const struct holders *h)
{
	for (size_t i = 0; i < buf_count(&h->past, struct past); i++) {
		const struct past *p = buf_at(&h->past, struct past, i);

		if (socket_is_local((const void *)&p->remote, p->size))
			return true;
	}
	return false;
}

bool past_connections_forget(unsigned port)
{
	bool free = false;

	for (int i = 0, passes = 0; passes < PASSES && i < CLOSING_PASSES && !free; i++) {
		struct holders h;
		bool over;

		if (i)
			sleep_ns(PAUSE_NS);
		find_all(port, &h);
		passes += !h.closing;
		free = i && !h.past.len && !h.closing && !h.others;
		over = h.others || (!h.closing && !any_is_local(&h));
		for (size_t k = 0; k < buf_count(&h.past, struct past) && !over; k++)
			reset_connection(buf_at(&h.past, struct past, k));
		buf_free(&h.past);
		if (over)
			break;
	}
	return free;
}
