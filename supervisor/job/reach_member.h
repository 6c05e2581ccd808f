/*
 * reach_member.h - connect to the supervisor of a member, wherever it is.
 */
#ifndef SUPERVISOR_JOB_REACH_MEMBER_H
#define SUPERVISOR_JOB_REACH_MEMBER_H

#include "supervisor/job/member_files.h"
#include "supervisor/job/wire.h"

/* control_connect(): to the supervisor of a process of this machine. */
typedef int reach_local(pid_t pid, pid_t *supervisor, struct err *e);

/* Fills in @w. *supervisor is its id if it can be woken up from here, else 0. */
int reach_member(const struct job_member *m, reach_local *local, struct wire *w,
	pid_t *supervisor, struct err *e);

/* Whether it answers at one of its addresses. */
bool reach_answers(const struct job_member *m);

#endif
