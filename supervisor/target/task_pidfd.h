/*
 * target/task_pidfd.h - a pidfd of a thread, which need not be the first of its process.
 */
#ifndef SUPERVISOR_TARGET_TASK_PIDFD_H
#define SUPERVISOR_TARGET_TASK_PIDFD_H

#include <sys/types.h>

#include "lib/err.h"

/* Of @task of process @pid, for pidfd_getfd(2), which finds a table of descriptors by a living
 * thread. The caller's to close; -1 on failure. */
int fd_task_open(pid_t pid, pid_t task, struct err *e);

#endif
