/*
 * checkpoint_snapshot.h - all of a checkpoint that the program has to be stopped for.
 */
#ifndef SUPERVISOR_RUN_CHECKPOINT_SNAPSHOT_H
#define SUPERVISOR_RUN_CHECKPOINT_SNAPSHOT_H

#include "supervisor/run/checkpoint_work.h"

/* Of the frozen tree. */
int checkpoint_snapshot(struct checkpoint_work *w);

#endif
