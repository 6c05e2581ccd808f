/* requests_again.h - the program's requests of messages (shared/mpi/messages.h), at a checkpoint and a restart. */
#ifndef LOWER_MPI_REQUESTS_AGAIN_H
#define LOWER_MPI_REQUESTS_AGAIN_H

#include "shared/mpi/messages.h"
#include "shared/mpi/state.h"

/* At a checkpoint, before anything is progressed: whether all can be made again. 0 or -1. */
int requests_check(struct mpi_state *s);

/* At a restart: persistent requests, and receives for messages that have not come yet, in the order in which they
 * were begun. 0 or -1. */
int requests_make(struct mpi_state *s);

#endif
