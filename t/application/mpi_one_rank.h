/*
 * mpi_one_rank.h - how the MPI programs of one rank check themselves, and are told by SIGUSR1 to end.
 */
#ifndef MPI_ONE_RANK_H
#define MPI_ONE_RANK_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(what)                                                                            \
	do {                                                                                   \
		if (!(what)) {                                                                 \
			printf("line %d: not so: %s\n", __LINE__, #what);                      \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

static volatile sig_atomic_t told_to_end;

static inline void on_end_signal(int signal)
{
	told_to_end = 1;
}

#endif
