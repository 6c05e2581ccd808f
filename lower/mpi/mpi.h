/* mpi.h - what the lower half does about MPI for the supervisor. Errors go to agent_fail(). */
#ifndef LOWER_MPI_MPI_H
#define LOWER_MPI_MPI_H

/* Whether all is saved that makes the library again, while the upper half is stopped: 0, or
 * -1 with what is not. */
int mpi_check(void);

/* Make it again. 0 or -1. */
int mpi_replay(void);

#endif
