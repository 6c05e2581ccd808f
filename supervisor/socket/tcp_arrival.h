/*
 * socket/tcp_arrival.h - at a checkpoint: have all that is under way in a TCP connection arrive.
 */
#ifndef SUPERVISOR_SOCKET_TCP_ARRIVAL_H
#define SUPERVISOR_SOCKET_TCP_ARRIVAL_H

#include <linux/tcp.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/err.h"

/* States of a connection (include/net/tcp_states.h). */
enum tcp_state {
	ESTABLISHED = 1,
	SYN_SENT,
	SYN_RECV,
	FIN_WAIT1,
	FIN_WAIT2,
	TIME_WAIT,
	CLOSED,
	CLOSE_WAIT,
	LAST_ACK,
	LISTEN,
	CLOSING,
};

int socket_tcp_info(int fd, struct tcp_info *info, struct err *e);

/* Whether nothing more comes after what is in it. */
bool socket_has_end(const struct tcp_info *receiver);

/* Have all that the other end has sent come to @to. That end is @from; or -1: it has been
 * closed already and has @unacknowledged bytes left, which its end (FIN) follows. */
int socket_await_arrival(int from, int to, uint64_t unacknowledged, struct err *e);

#endif
