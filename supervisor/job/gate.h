/*
 * gate.h - the port at which a member is reached from other machines of the job. Who shows that
 * it knows the member's secret (wire.h) is let through to the supervisor's control socket, as a
 * client of this machine would be; lines pass both ways from then on. Unknown visitors have a few
 * seconds and a few bytes, and get nothing.
 *
 * The supervisor's thread serves the gate until the program runs; from then on a thread of the
 * gate's own does, as the supervisor's takes checkpoints.
 */
#ifndef SUPERVISOR_JOB_GATE_H
#define SUPERVISOR_JOB_GATE_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"
#include "lib/util.h"
#include "supervisor/job/wire.h"

struct gate;

/* Listen at a port that the kernel chooses, on @interface only if it is not NULL. NULL on
 * failure. */
struct gate *gate_open(const uint8_t secret[WIRE_KEY], const char *interface, struct err *e);
int gate_port(const struct gate *g);

/* Serve waiting requests, and wait @wait_ms for one, at most; also for one of @others, which are
 * polled as well. @socket is the name of the control socket. */
void gate_serve(
	struct gate *g, const char *socket, struct pollfd *others, size_t count, int wait_ms);

/* By a thread, until the process ends. */
int gate_start(struct gate *g, const char *socket, struct err *e);

/* The control socket and all its connections are closed: wait until the last answers have gone
 * out. */
void gate_finish(const struct gate *g);

#endif
