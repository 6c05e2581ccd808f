/*
 * control_socket.h - the supervisor's end of its control socket (control_protocol.h).
 *
 * Connections are read without blocking, so a client that says nothing holds nobody up. A
 * request is answered when its line is complete, one at a time: while the handler works,
 * other clients wait.
 */
#ifndef SUPERVISOR_RUN_CONTROL_SOCKET_H
#define SUPERVISOR_RUN_CONTROL_SOCKET_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "supervisor/start/supervisor.h"
#include "lib/err.h"
#include "lib/util.h"
#include "supervisor/descriptors/descriptors.h"

#define CONTROL_CLIENTS  16
#define CONTROL_POLL_MAX (CONTROL_CLIENTS + 1)

struct control;

enum control_kind { CONTROL_CHECKPOINT, CONTROL_STATUS };

struct control_request {
	enum control_kind kind;
	bool stop;
	bool no_try, verify; /* as in struct checkpoint_request */
	bool has_tcp;        /* how to deal with connections to the outside: */
	enum fd_tcp tcp;
	bool has_compress; /* how to compress memory: */
	struct pack_choice compress;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC, 0: none */
	uint64_t drain_ns;    /* how long GPUs may take to come to rest, 0: not said */
	uint64_t part;        /* the job's checkpoint of which it is a part, 0: of none */
	int fd;               /* to the client */
};

/* Puts the answer's text into @answer. */
typedef void control_handler(
	void *arg, const struct control_request *request, struct buf *answer);

/* Listen; removes sockets of supervisors that are gone. Only the same user and root are
 * listened to. NULL on failure. */
struct control *control_open(struct err *e);
/* Stop listening and remove the socket. */
void control_close(struct control *c);

/* Fill @fds (room for CONTROL_POLL_MAX) with what to poll(2) for; returns how many. */
size_t control_poll(const struct control *c, struct pollfd *fds);
/* Serve what poll(2) found. */
void control_serve(struct control *c, const struct pollfd *fds, size_t count,
	control_handler *handler, void *arg);

#endif
