/* library_check.h - whether the library that a restart has loaded, which may be another one, can take what the program
 * has. */
#ifndef LOWER_MPI_LIBRARY_CHECK_H
#define LOWER_MPI_LIBRARY_CHECK_H

#include "shared/mpi/mpi_state.h"

/* Before it is initialised, as then it waits for the other ranks: 0, or -1 with what it cannot take. */
int library_check(struct mpi_state *s);

/* When it is: whether its limits are no lower than what the program was told. 0 or -1. */
int library_check_limits(const struct mpi_state *s);

#endif
