/*
 * checkpoint_may_end.h - whether a program may be ended after its checkpoint.
 */
#ifndef SUPERVISOR_RUN_CHECKPOINT_MAY_END_H
#define SUPERVISOR_RUN_CHECKPOINT_MAY_END_H

#include "supervisor/run/checkpoint_work.h"

/* Of the frozen program, whose checkpoint is complete: try a restart, and hold its connections.
 * 0: it can be ended. CHECKPOINT_KEPT, -1: it is to resume; w->e tells why. */
int checkpoint_may_end(struct checkpoint_work *w);

#endif
