/*
 * uring/uring_refuse.h - what makes an io_uring impossible to save, beside its requests.
 */
#ifndef SUPERVISOR_URING_URING_REFUSE_H
#define SUPERVISOR_URING_URING_REFUSE_H

#include "supervisor/uring/uring_inspect.h"

int uring_refuse_rest(struct uring_look *u, struct err *e);

/* The thread that polls it is the first process's alone. */
int uring_refuse_shared(struct fd_dump *d, const struct uring_look *u, struct err *e);

#endif
