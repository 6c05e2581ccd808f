/*
 * unsaved_between.h - what members of a job have between them that no member's image can hold:
 * messages of MPI and NCCL, and shared memory. Sockets and pipes that lead out of a member, and
 * System V memory, are seen when the member is saved.
 */
#ifndef SUPERVISOR_JOB_UNSAVED_BETWEEN_H
#define SUPERVISOR_JOB_UNSAVED_BETWEEN_H

#include <stddef.h>
#include <sys/types.h>

#include "lib/err.h"

/* Of the processes @pids of this member, by id, which are stopped: fails when there is such a
 * thing, and says what it is and what to do. */
int between_check(const pid_t *pids, size_t count, struct err *e);

#endif
