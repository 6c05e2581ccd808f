/*
 * Bytes that the receiver had no room for come over when it has; a look at its queue tells the
 * sender. Its buffer stays larger, as if it had read more. Of a sender that was closed the
 * kernel alone has those bytes left; it forgets the sender when they have come.
 */
#include "supervisor/socket/tcp_arrival.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/util.h"
#include "supervisor/socket/socket_options.h"

/* How long nothing may come before that is taken for final, or more is done about it. What was
 * dropped for want of room is sent again after 0.2 s (TCP_RTO_MIN), and after twice as long
 * each time that it is dropped again. */
#define PATIENCE_NS 3000000000ull
#define REST_NS     300000000ull
#define HURRY_NS    20000000ull
#define PAUSE_NS    2000000

struct way {
	int from, to;
	int unread;      /* bytes that have come */
	uint64_t behind; /* that are still to come */
	bool at_rest;    /* nothing is on its way: the receiver has no room */
};

int socket_tcp_info(int fd, struct tcp_info *info, struct err *e)
{
	socklen_t size = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &size)
		       ? err_set(e, errno, "cannot query its state")
		       : 0;
}

/* Of a sender that is open. The numbers count bytes of segments, and an end (FIN) as one where
 * it is received only (tcp_rcv_nxt_update()). */
static int look_at_sender(struct way *w, const struct tcp_info *receiver, struct err *e)
{
	struct tcp_info sender;
	int64_t missing;
	int unsent;

	if (socket_tcp_info(w->from, &sender, e))
		return -1;
	if (ioctl(w->from, SIOCOUTQNSD, &unsent))
		return err_set(e, errno, "cannot query how much it has not sent yet");
	missing = (int64_t)(sender.tcpi_bytes_sent - sender.tcpi_bytes_retrans) -
		  (int64_t)receiver->tcpi_bytes_received;
	w->at_rest = !sender.tcpi_unacked;
	w->behind = (unsent > 0 ? unsent : 0) + (missing > 0 ? missing : 0);
	return 0;
}

bool socket_has_end(const struct tcp_info *receiver)
{
	return receiver->tcpi_state != ESTABLISHED && receiver->tcpi_state != FIN_WAIT1 &&
	       receiver->tcpi_state != FIN_WAIT2;
}

/* Whether all has come into *@yes. */
static int look_at_way(struct way *w, bool *yes, struct err *e)
{
	struct tcp_info receiver;

	if (socket_tcp_info(w->to, &receiver, e))
		return -1;
	if (ioctl(w->to, SIOCINQ, &w->unread))
		return err_set(e, errno, "cannot query how much waits in it");
	if (w->from >= 0 && look_at_sender(w, &receiver, e))
		return -1;
	*yes = w->from >= 0 ? !w->behind : socket_has_end(&receiver);
	return 0;
}

static int fail_stuck(const struct way *w, struct err *e)
{
	if (!w->behind)
		return err_with(
			e, ERR_TRY_AGAIN, "its other end is closed, and it has not been told");
	/* The program continues to read; nobody knows when. */
	return err_with(e, w->from < 0 ? ERR_FINAL : ERR_TRY_AGAIN,
		"%" PRIu64
		" bytes that were sent to it do not arrive, as it has room for no more "
		"than the %d that wait in it; more is up to net.ipv4.tcp_rmem and, without "
		"CAP_NET_ADMIN, net.core.rmem_max",
		w->behind, w->unread);
}

/* 1: nothing comes any more for @patience, in nanoseconds, or for a while if nothing can. */
static int let_come(struct way *w, uint64_t patience, struct err *e)
{
	uint64_t since = clock_ns(CLOCK_MONOTONIC);
	bool all = false;

	for (;;) {
		int before = w->unread;
		uint64_t idle;
		char c;

		if (look_at_way(w, &all, e) || all)
			return all ? 0 : -1;
		if (w->unread != before)
			since = clock_ns(CLOCK_MONOTONIC);
		idle = clock_ns(CLOCK_MONOTONIC) - since;
		if (idle > patience || (w->at_rest && idle > REST_NS))
			return 1;
		(void)!recv(w->to, &c, 1, MSG_PEEK | MSG_DONTWAIT);
		sleep_ns(PAUSE_NS);
	}
}

/* With as large a buffer as it takes. */
static int force_room(struct way *w, struct err *e)
{
	struct socket_guard g = {.socket = w->to};
	int r;

	/* Kernels before 5.14 do not tell whether the program has chosen the size: then it
	 * stays. */
	if (socket_force_note(&g, NULL))
		return let_come(w, PATIENCE_NS, e);
	if (socket_guard_begin(&g, e))
		return -1;
	(void)socket_force(w->to, w->unread + w->behind); /* without the privilege, wait on */
	r = let_come(w, PATIENCE_NS, e);
	return socket_guard_end(&g, r < 0 ? NULL : e) ? -1 : r;
}

int socket_await_arrival(int from, int to, uint64_t unacknowledged, struct err *e)
{
	struct way w = {.from = from, .to = to, .behind = unacknowledged};
	struct socket_guard g = {.socket = to};
	bool all;
	int r;

	if (look_at_way(&w, &all, e) || all)
		return all ? 0 : -1;
	if (socket_grow_note(&g, e) || socket_guard_begin(&g, e))
		return -1;
	socket_grow(to, w.unread + w.behind);
	r = let_come(&w, HURRY_NS, e);
	if (r > 0)
		r = force_room(&w, e);
	if (r > 0)
		r = fail_stuck(&w, e);
	r |= socket_guard_end(&g, r ? NULL : e);
	return r ? -1 : 0;
}
