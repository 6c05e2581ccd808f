/*
 * checkpoint_commit.h - a checkpoint that is written becomes complete.
 */
#ifndef SUPERVISOR_RUN_CHECKPOINT_COMMIT_H
#define SUPERVISOR_RUN_CHECKPOINT_COMMIT_H

#include "supervisor/run/checkpoint_work.h"

/* The checkpoints that @writer's file refers to: its own, then @parent's (NULL: no parent).
 */
void checkpoint_write_chain(
	struct checkpoint_work *w, struct image_writer *writer, const struct image *parent);

/* To disk, under its final name: w->made is set. The program may run meanwhile. */
int checkpoint_complete(struct checkpoint_work *w);

/* Remove old checkpoints. One too many does no harm; the next checkpoint tries again. */
void checkpoint_prune(struct checkpoint_work *w);

#endif
