/*
 * checkpoint_quiesce.h - before a program is frozen: if it is a rank of MPI, it comes to rest together with the
 * others (job/quiesce.h).
 */
#ifndef SUPERVISOR_RUN_CHECKPOINT_QUIESCE_H
#define SUPERVISOR_RUN_CHECKPOINT_QUIESCE_H

#include "lib/err.h"
#include "lib/util.h"
#include "supervisor/run/checkpoint_work.h"

/* While the program runs: until it may be frozen, from when on it enters no collective call until
 * checkpoint_quiesce_end(). */
int checkpoint_quiesce(struct checkpoint_work *w);

/* It is frozen: whether it is as it was then. */
int checkpoint_quiesce_check(struct checkpoint_work *w);

/* It is frozen no more, or is about to be let go. */
void checkpoint_quiesce_end(struct checkpoint_work *w);

#endif
