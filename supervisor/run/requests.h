/*
 * requests.h - what the supervisor does when it is asked: by a client, its timer, a signal.
 */
#ifndef SUPERVISOR_RUN_REQUESTS_H
#define SUPERVISOR_RUN_REQUESTS_H

#include "lib/err.h"
#include "lib/util.h"
#include "supervisor/control/control_socket.h"
#include "supervisor/job/job_checkpoint.h"
#include "supervisor/run/take_checkpoint.h"
#include "supervisor/start/supervisor.h"

/* Answer @request of a client into @answer; a control_handler whose @arg is the supervisor. */
control_handler requests_answer;

/* Take a checkpoint that nobody waits for, in @deadline_s seconds (0: any) or not at all; in a
 * member of a job, one of the job, for @reason. A failure is reported on standard error. */
void requests_checkpoint(struct supervisor *s, enum job_reason reason, unsigned deadline_s);

#endif
