/* requests_replay.h - the program's requests of messages (shared/mpi/message_records.h), at a checkpoint and a
 * restart. */
#ifndef LOWER_MPI_REQUESTS_REPLAY_H
#define LOWER_MPI_REQUESTS_REPLAY_H

#include "shared/mpi/message_records.h"
#include "shared/mpi/mpi_state.h"

/* At a checkpoint, while the library is reserved: whether all can be made again. 0 or -1. */
int requests_check(struct mpi_state *s);

/* Look whether @r is complete, which then is held for the program (drain.c). */
void request_look(struct mpi_request *r);

/* At a restart: persistent requests, and receives for messages that have not come yet, in the order in which they
 * were begun. 0 or -1. */
int requests_make(struct mpi_state *s);

/* The same of requests that are made by a call of the program's which its record keeps: persistent ones of collective
 * calls, and generalized ones (origins_replay.c). Other ranks have to do so, too. 0 or -1. */
int origins_make(struct mpi_state *s);

#endif
