/* windows_replay.h - the program's windows (shared/mpi/window_records.h), at a checkpoint and a restart. */
#ifndef LOWER_MPI_WINDOWS_REPLAY_H
#define LOWER_MPI_WINDOWS_REPLAY_H

#include "lower/mpi/saved_values.h"

int window_save(struct mpi_object *o);
/* At a restart, before the first is made: what windows have in common is not there yet. */
void windows_forget(struct mpi_state *s);
int window_make(struct mpi_object *o, struct saved_reader *r);

/* All ranks are stopped, and do this now: whatever one has begun is complete at its target when this returns. 0 or
 * -1, also when the others have not come until then (CLOCK_MONOTONIC, in ns). */
int windows_complete(struct mpi_state *s, uint64_t until_ns);

#endif
