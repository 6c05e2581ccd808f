/* mpi.h - what the lower half does about MPI for the supervisor. Errors go to agent_fail(). */
#ifndef LOWER_MPI_MPI_H
#define LOWER_MPI_MPI_H

#include <stdint.h>

/* Whether all is saved that makes the library again, while the upper half is stopped: 0, or
 * -1 with what is not. */
int mpi_check(void);

/* All ranks are stopped: complete what is under way, for a moment, and say in struct mpi_messages whether that
 * is all. If @take, messages that nobody has asked for are received; else it is looked whether synchronous sends
 * come to their ends. Other ranks are waited for @patience_ns at most. 0 or -1. */
int mpi_drain(int take, uint64_t patience_ns);

/* Make it again. 0 or -1. */
int mpi_replay(void);

#endif
