/* files_replay.h - files opened by MPI_File_open (shared/mpi/file_records.h): asked about at a checkpoint, opened again
 * at a restart. */
#ifndef LOWER_MPI_FILES_REPLAY_H
#define LOWER_MPI_FILES_REPLAY_H

#include "shared/mpi/mpi_state.h"

/* All of them, when nothing is under way in any rank. Split collective calls are ended, and held. 0 or -1. */
int files_save(struct mpi_state *s);
/* By all ranks, when all objects are made. 0 or -1. */
int files_make(struct mpi_state *s);

#endif
