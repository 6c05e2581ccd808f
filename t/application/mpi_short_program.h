/* mpi_short_program.h - how MPI programs that run through once check what they get. */
#ifndef MPI_SHORT_PROGRAM_H
#define MPI_SHORT_PROGRAM_H

#include <stdio.h>

static int rank, size;

#define CHECK(what)                                                                            \
	do {                                                                                   \
		if (!(what)) {                                                                 \
			printf("rank %d: line %d: not so: %s\n", rank, __LINE__, #what);       \
			fflush(stdout);                                                        \
			MPI_Abort(MPI_COMM_WORLD, 1);                                          \
		}                                                                              \
	} while (0)

#endif
