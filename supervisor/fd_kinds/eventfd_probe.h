/*
 * fd_kinds/eventfd_probe.h - whether an eventfd is a semaphore, where /proc does not show it.
 */
#ifndef SUPERVISOR_FD_KINDS_EVENTFD_PROBE_H
#define SUPERVISOR_FD_KINDS_EVENTFD_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/err.h"

/* Of @fd, whose count is @count; nobody else may read or write it meanwhile. Its count is the same
 * afterwards, even if we are killed. A thread that waits for it may be woken, and find nothing new. */
int eventfd_is_semaphore(int fd, uint64_t count, bool *semaphore, struct err *e);

#endif
