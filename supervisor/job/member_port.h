/*
 * member_port.h - the port at which a member is reached from other machines of the job. Who shows that
 * it knows the member's secret (wire.h) is let through to the supervisor's control socket, as a
 * client of this machine would be; lines pass both ways from then on. Unknown visitors have a few
 * seconds and a few bytes, and get nothing.
 *
 * The supervisor's thread serves the port until the program runs; from then on a thread of
 * its own does, as the supervisor's takes checkpoints.
 */
#ifndef SUPERVISOR_JOB_MEMBER_PORT_H
#define SUPERVISOR_JOB_MEMBER_PORT_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"
#include "lib/util.h"
#include "supervisor/job/wire.h"

struct member_port;

/* Listen at a port that the kernel chooses, on @interface only if it is not NULL. NULL on
 * failure. */
struct member_port *member_port_open(
	const uint8_t secret[WIRE_KEY], const char *interface, struct err *e);
int member_port_number(const struct member_port *g);

/* Serve waiting requests, and wait @wait_ms for one, at most; also for one of @others, which are
 * polled as well. @socket is the name of the control socket. */
void member_port_serve(struct member_port *g, const char *socket, struct pollfd *others,
	size_t count, int wait_ms);

/* By a thread, until the process ends. */
int member_port_start(struct member_port *g, const char *socket, struct err *e);

/* The control socket and all its connections are closed: wait until the last answers have gone
 * out. */
void member_port_finish(const struct member_port *g);

#endif
