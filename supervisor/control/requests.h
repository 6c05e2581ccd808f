/*
 * requests.h - what the supervisor does when it is asked: by a client, its timer, a signal.
 */
#ifndef SUPERVISOR_CONTROL_REQUESTS_H
#define SUPERVISOR_CONTROL_REQUESTS_H

#include "lib/err.h"
#include "lib/util.h"
#include "supervisor/checkpoint.h"
#include "supervisor/control/control.h"
#include "supervisor/supervisor.h"

/* Answer @request of a client into @answer; a control_handler whose @arg is the supervisor. */
control_handler requests_answer;

/* Take a checkpoint that nobody waits for. A failure is reported on standard error. */
void requests_checkpoint(struct supervisor *s);

#endif
