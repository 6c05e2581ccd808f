/*
 * control_client.h - find the supervisor of a process and ask it something.
 */
#ifndef SUPERVISOR_CONTROL_CONTROL_CLIENT_H
#define SUPERVISOR_CONTROL_CONTROL_CLIENT_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"
#include "lib/util.h"

/* Connect to the supervisor @pid, or to the supervisor of the process @pid: the nearest ancestor with
 * a control socket. *supervisor gets its id. Returns the socket, -1 on failure. */
int control_connect(pid_t pid, pid_t *supervisor, struct err *e);

/*
 * Send @request (a line) and wait for the whole answer, until @deadline_ns (CLOCK_MONOTONIC,
 * 0: for ever). A supervisor that is stopped is woken up. On success *answer is what was
 * answered, with a NUL behind; the answer "error TEXT" is a failure with that text.
 */
int control_ask(int fd, pid_t supervisor, const char *request, uint64_t deadline_ns,
	struct buf *answer, struct err *e);

#endif
