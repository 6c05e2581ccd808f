/*
 * checkpoint_frozen.h - the part of a checkpoint during which the program is frozen.
 */
#ifndef SUPERVISOR_RUN_CHECKPOINT_FROZEN_H
#define SUPERVISOR_RUN_CHECKPOINT_FROZEN_H

#include "supervisor/run/checkpoint_work.h"

/* Freeze, snapshot, and thaw; with request->try_restart, complete the checkpoint and try a restart before
 * that; with request->stop, do so and end the program instead. 0, -1 or CHECKPOINT_KEPT; unless it is 0, the program
 * resumes. The calling thread is the tracer. */
int checkpoint_freeze_and_save(struct checkpoint_work *w);

#endif
