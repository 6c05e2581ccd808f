/*
 * uring/uring_settle.h - requests under way at a checkpoint: they end, or they wait and can be
 * issued again.
 */
#ifndef SUPERVISOR_URING_URING_SETTLE_H
#define SUPERVISOR_URING_URING_SETTLE_H

#include "supervisor/uring/uring_inspect.h"

/* Wait until all that was begun has ended, but for requests that wait for something; of these
 * there is a line each in @out: "request NUMBER". Fails when a request neither ends nor could
 * be issued again, with what is known. */
int uring_settle(struct uring_look *u, struct buf *out, struct err *e);

/* The thread of the process that has submitted them, most probably. */
const struct thread *uring_submitter(const struct uring_look *u);

#endif
