/*
 * control_socket.h - the supervisor's end of its control socket (control_protocol.h).
 *
 * Connections are read without blocking, so a client that says nothing holds nobody up. A
 * request is answered when its line is complete. The handler of a request for a checkpoint may
 * serve other clients before it returns: those that ask how things are get their answer, those
 * that ask for a checkpoint wait.
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

enum control_kind { CONTROL_CHECKPOINT, CONTROL_STATUS, CONTROL_TURN, CONTROL_GATHER };

struct control_request {
	enum control_kind kind;
	bool stop;
	bool no_try, verify; /* as in struct checkpoint_request */
	bool fork;
	bool has_tcp; /* how to deal with connections to the outside: */
	enum fd_tcp tcp;
	bool has_compress; /* how to compress memory: */
	struct pack_choice compress;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC, 0: none; */
	bool foresee;         /* as in struct checkpoint_request */
	uint64_t threads;     /* that write memory, 0: not said */
	uint64_t rate;        /* bytes a second at most, 0: not said */
	uint64_t drain_ns;    /* how long GPUs may take to come to rest, 0: not said */
	int signalled;        /* of a turn: as for turns_ask() */
	bool again;           /* as well */
	int rank, size;       /* of a member that is restarted */
	char from[40];        /* the checkpoint that it is restarted from */
	uint64_t part;        /* the job's checkpoint of which it is a part, 0: of none */
	int fd;               /* to the client; closed behind the answer */
};

/* Puts the answer's text into @answer. */
typedef void control_handler(
	void *arg, const struct control_request *request, struct buf *answer);

/* Listen; removes sockets of supervisors that are gone. Only the same user and root are
 * listened to. NULL on failure. */
struct control *control_open(struct err *e);
/* Stop listening and remove the socket. */
void control_close(struct control *c);

/* Its name. */
const char *control_name(const struct control *c);

/* Fill @fds (room for CONTROL_POLL_MAX) with what to poll(2) for; returns how many. */
size_t control_poll(const struct control *c, struct pollfd *fds);
/* Serve what poll(2) found; inside a handler, too. */
void control_serve(struct control *c, const struct pollfd *fds, size_t count,
	control_handler *handler, void *arg);

/* Serve who has had to wait for longest. Not inside a handler. False: nobody waits. */
bool control_serve_waiting(struct control *c, control_handler *handler, void *arg);
/* How many wait. */
unsigned control_waiting(const struct control *c);

/* Whether the client behind @fd, whose request is being handled, has closed the connection; as
 * of the last control_serve(). */
bool control_has_left(const struct control *c, int fd);

#endif
