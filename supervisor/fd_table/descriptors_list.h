/*
 * fd_table/descriptors_list.h - which descriptors a frozen process has.
 */
#ifndef SUPERVISOR_FD_TABLE_DESCRIPTORS_LIST_H
#define SUPERVISOR_FD_TABLE_DESCRIPTORS_LIST_H

#include <sys/types.h>

#include "lib/err.h"
#include "lib/util.h"

/* Numbers (int) of the open descriptors of @task below @limit, ascending. */
int descriptors_list(pid_t task, int limit, struct buf *numbers, struct err *e);

/* A leader that has ended has no descriptors any more, while its threads still do: *task
 * is the first that has. Into @own (pid_t) the threads that have others; NULL: not asked. */
int descriptors_task(pid_t pid, pid_t *task, struct buf *own, struct err *e);

#endif
