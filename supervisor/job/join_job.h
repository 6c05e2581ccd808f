/*
 * join_job.h - how a supervisor becomes a member of a job.
 */
#ifndef SUPERVISOR_JOB_JOIN_JOB_H
#define SUPERVISOR_JOB_JOIN_JOB_H

#include "lib/err.h"
#include "supervisor/start/supervisor.h"

/* Where a launcher has started several of us, and @s is not to be by itself (--alone): become a
 * member of the job in @dir (s->job). @from is the checkpoint that it is restarted from, NULL
 * for a program that starts. */
int job_join_supervisor(struct supervisor *s, const char *dir, const char *from, struct err *e);

/* Programs that this process starts from now on find their supervisor at @socket, or at none if it is NULL, whoever has
 * started us. So does one that is restarted, as this is one of the launcher's variables. */
int job_name_supervisor(const char *socket, struct err *e);

#endif
