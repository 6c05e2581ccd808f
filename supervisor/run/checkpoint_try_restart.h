/*
 * checkpoint_try_restart.h - whether a checkpoint can be restarted, and a program may be ended after it.
 */
#ifndef SUPERVISOR_RUN_CHECKPOINT_TRY_RESTART_H
#define SUPERVISOR_RUN_CHECKPOINT_TRY_RESTART_H

#include "supervisor/run/checkpoint_work.h"

/* Of the frozen program, whose checkpoint is complete: look at all that can be known of a
 * restart, and try one. 0: none that would fail is known; CHECKPOINT_KEPT: w->e tells why it would. */
int checkpoint_try(struct checkpoint_work *w);

/* Of one whose restart is not tried: add a notice where only that would tell. */
void checkpoint_tell_untried(const struct checkpoint_work *w);

/* The same as checkpoint_try(), and hold its connections.
 * 0: it can be ended. CHECKPOINT_KEPT, -1: it is to resume; w->e tells why. */
int checkpoint_may_end(struct checkpoint_work *w);

#endif
