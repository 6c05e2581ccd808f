/* checkpoint_drain.h - messages between ranks of MPI, when all are frozen (job/checkpoint_part.h,
 * lower/mpi/drain.c). */
#ifndef SUPERVISOR_RUN_CHECKPOINT_DRAIN_H
#define SUPERVISOR_RUN_CHECKPOINT_DRAIN_H

#include "supervisor/run/checkpoint_work.h"

/* Have all messages to this rank received, while other ranks do the same. */
int checkpoint_drain(struct checkpoint_work *w);

#endif
