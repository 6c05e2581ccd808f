/* collective_gate.h - communicators that collective calls are counted for (collective_gate.c). */
#ifndef STUBS_MPI_COLLECTIVE_GATE_H
#define STUBS_MPI_COLLECTIVE_GATE_H

#include "stubs/mpi/handle_table.h"

/* In a guarded body, of a collective call that has made @o, a communicator: all its members agree on a
 * number for it. */
STUB_HIDDEN void gate_number(struct mpi_object *o);
/* The same of one that MPI_Comm_idup has begun to make, which is like @of. */
STUB_HIDDEN void gate_number_copy(struct mpi_object *o, const struct mpi_object *of);

/* In a guarded body: count messages to and from each of the members of @comm. 0, or -1. */
STUB_HIDDEN int gate_count_messages(MPI_Comm comm, struct mpi_count *c);

/* It has been freed. */
STUB_HIDDEN void gate_freed(const struct mpi_object *o);

#endif
