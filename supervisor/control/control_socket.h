/*
 * control_socket.h - the supervisor's end of its control socket (control_protocol.h).
 *
 * Connections are read without blocking, so a client that says nothing holds nobody up. A
 * request is answered when its line is complete. The handler of a request for a checkpoint may
 * serve other clients before it returns: clients that ask how things are get their answer, clients
 * that ask for a checkpoint wait.
 */
#ifndef SUPERVISOR_CONTROL_CONTROL_SOCKET_H
#define SUPERVISOR_CONTROL_CONTROL_SOCKET_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"
#include "lib/util.h"
#include "supervisor/control/control_request.h"

#define CONTROL_CLIENTS  16
#define CONTROL_POLL_MAX (CONTROL_CLIENTS + 1)

struct control;

/* Puts the answer's text into @answer. */
typedef void control_handler(
	void *arg, const struct control_request *request, struct buf *answer);

/* Listen. Only the same user and root are listened to. NULL on failure. */
struct control *control_open(struct err *e);
/* Remove the sockets of supervisors that are gone, unless another supervisor is at it. */
void control_tidy(const struct control *c);
/* Stop listening and remove the socket. */
void control_close(struct control *c);

/* Its name. */
const char *control_name(const struct control *c);

/* Fill @fds (room for CONTROL_POLL_MAX) with what to poll(2) for; returns how many. */
size_t control_poll(const struct control *c, struct pollfd *fds);
/* Serve what poll(2) found; inside a handler, too. */
void control_serve(struct control *c, const struct pollfd *fds, size_t count,
	control_handler *handler, void *arg);

/* Whether clients that ask for a checkpoint wait, as one is being taken that no client has asked for, at an
 * interval or on a signal; what held before. */
bool control_hold_checkpoints(struct control *c, bool hold);
/* How often control_serve() was called. */
uint64_t control_rounds(const struct control *c);

/* Serve the client that has waited longest. Not inside a handler. False: none waits. */
bool control_serve_waiting(struct control *c, control_handler *handler, void *arg);
/* How many wait. */
unsigned control_waiting(const struct control *c);

/* Whether the client behind @fd, whose request is being handled, has closed the connection; as
 * of the last control_serve(). */
bool control_has_left(const struct control *c, int fd);

#endif
