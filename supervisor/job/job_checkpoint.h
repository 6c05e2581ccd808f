/*
 * job_checkpoint.h - a member of a job that has a reason of its own for a checkpoint (a signal,
 * the clock) has one taken of the whole job, by a thread that does what trecr-ckpt does: the
 * supervisor's own has its part in it.
 */
#ifndef SUPERVISOR_JOB_JOB_CHECKPOINT_H
#define SUPERVISOR_JOB_JOB_CHECKPOINT_H

#include "supervisor/start/supervisor.h"

enum job_reason { JOB_SIGNAL, JOB_INTERVAL };

/* What comes of it is said on standard error. While one is under way, a signal asks for another
 * one, and an interval for nothing. @deadline_s: how long it may take (0: as long as it takes).
 */
void job_checkpoint_begin(struct supervisor *s, enum job_reason reason, unsigned deadline_s);

#endif
