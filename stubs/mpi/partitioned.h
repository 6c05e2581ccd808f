/* partitioned.h - partitioned requests, which are the stub's own (partitioned.c). */
#ifndef STUBS_MPI_PARTITIONED_H
#define STUBS_MPI_PARTITIONED_H

#include "stubs/mpi/collective_gate.h"
#include "stubs/mpi/messages.h"

/* In guarded bodies: the library has come up, and is about to end. */
STUB_HIDDEN void partitions_come_up(void);
STUB_HIDDEN void partitions_end(void);

static inline int request_is_partitioned(const struct mpi_request *r)
{
	return r->kind == MPI_PARTITIONED_SEND || r->kind == MPI_PARTITIONED_RECEIVE;
}

/* In front of the crossing: MPI_Start for @r. The call's result. */
STUB_HIDDEN int partitioned_start(struct mpi_request *r);

/* In a step: whether @r, which is active and not held, is not to be given to the library to be completed. A receive that is complete is held. */
STUB_HIDDEN int partitioned_is_withheld(struct mpi_request *r);

#endif
