/*
 * fd_kinds/pipe_holders.h - who else holds an end of a pipe or FIFO. The kernel does not say, so all
 * processes that may be looked at are.
 */
#ifndef SUPERVISOR_FD_KINDS_PIPE_HOLDERS_H
#define SUPERVISOR_FD_KINDS_PIPE_HOLDERS_H

#include "supervisor/fd/fd.h"

/* Fail when a process that is not saved holds a pipe that is. */
int fd_holders_check(const struct fd_dump *d, struct err *e);

#endif
