/* collective_gate.h - collective calls are counted: those about communicators, files and windows
 * (collective_gate.c). */
#ifndef STUBS_MPI_COLLECTIVE_GATE_H
#define STUBS_MPI_COLLECTIVE_GATE_H

#include "stubs/mpi/handle_table.h"

/* In a guarded body, of a collective call that has made @o, a communicator: all its members agree on a
 * number for it. */
STUB_HIDDEN void gate_number(struct mpi_object *o);
/* The same for a communicator that MPI_Comm_idup has begun to make as a copy of @of. */
STUB_HIDDEN void gate_number_copy(struct mpi_object *o, const struct mpi_object *of);

/* The same for a file that all members of @comm have opened: what collective calls on it are counted on. NULL:
 * nothing. */
STUB_HIDDEN struct mpi_count *gate_number_file(MPI_Comm comm);

/* In a guarded body: count messages to and from each of the members of @comm. 0, or -1. */
STUB_HIDDEN int gate_count_messages(MPI_Comm comm, struct mpi_count *c);

/* In front of everything: the program is about to start @request by that function. What it is counted on, if it is of a
 * collective call, else NULL; and it has. */
STUB_HIDDEN struct mpi_count *gate_enter(int32_t request, unsigned index);
STUB_HIDDEN void gate_leave(struct mpi_count *c);
/* The same of a call that all ranks make. */
STUB_HIDDEN struct mpi_count *gate_enter_all(unsigned index);

/* In a guarded body: whether all ranks of @comm, one group of them, are of MPI_COMM_WORLD. */
STUB_HIDDEN int gate_is_of_world(MPI_Comm comm);
/* A number that nothing else has in any rank, for this one to tell others. */
STUB_HIDDEN uint64_t gate_new_number(void);
/* In a guarded body, of a collective call that has made @o, a window: its members have agreed on this number for it. And
 * before that: calls about windows that wait for other ranks are counted from now on. */
STUB_HIDDEN void gate_number_window(struct mpi_object *o, uint64_t number, uint32_t members);
STUB_HIDDEN void gate_begin_windows(void);
/* In front of everything: this thread is about to wait in the library until other ranks make progress, for gate_leave()
 * behind it. */
STUB_HIDDEN struct mpi_count *gate_enter_window(unsigned index);

/* In a guarded body: @o, a communicator of all ranks, is the stub's own for partitioned requests. 0, or -1. */
STUB_HIDDEN int gate_number_partitions(struct mpi_object *o);

/* It has been freed. */
STUB_HIDDEN void gate_freed(const struct mpi_object *o);

#endif
