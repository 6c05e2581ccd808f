/*
 * mpi_ranks.h - how the MPI programs of several ranks check themselves, and show that they have
 * come back from a checkpoint.
 */
#ifndef MPI_RANKS_H
#define MPI_RANKS_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int rank, size, the_round;

#define CHECK(what)                                                                            \
	do {                                                                                   \
		if (!(what)) {                                                                 \
			printf("rank %d, round %d, line %d: not so: %s\n", rank, the_round,    \
				__LINE__, #what);                                              \
			fflush(stdout);                                                        \
			MPI_Abort(MPI_COMM_WORLD, 1);                                          \
		}                                                                              \
	} while (0)

/* Whether a call has failed that an error handler of the program's is told of: then MPICH 5.0.2 returns MPI_SUCCESS. */
#ifdef TOLD_IS_SUCCESS
#define FAILS(call) ((call), 1)
#else
#define FAILS(call) ((call) != MPI_SUCCESS)
#endif

/* Pseudo-random numbers, the same in each run: those from `common` are the same in all ranks; `own` is for each rank
 * to set. */
static unsigned common __attribute__((unused)) = 1, own;

static inline unsigned chance(unsigned *seed, unsigned n)
{
	*seed = *seed * 1103515245 + 12345;
	return (*seed >> 16) % n;
}

/* Compute for up to some microseconds, and sometimes sleep for up to 2 ms. */
static inline void work_at_random(void)
{
	const struct timespec nap = {.tv_nsec = 1000 * (long)chance(&own, 2000)};
	volatile double sum = 0;

	for (unsigned i = chance(&own, 20000); i; i--)
		sum += i;
	if (!chance(&own, 6))
		nanosleep(&nap, NULL);
}

/* The first round behind a checkpoint or restart is shown: the test removes the link. */
static inline void show_round(int round)
{
	char name[32], value[32], room[4];

	snprintf(name, sizeof(name), "round.%d", rank);
	snprintf(value, sizeof(value), "%d", round);
	if (readlink(name, room, sizeof(room)) < 0)
		(void)!symlink(value, name);
}

/* Behind a round of all ranks of @comm: prints "ready" after the first, and sets @on to whether another round is to
 * follow, which rank 0 decides: unless the file "go" is there. */
#define END_ROUND(comm, round, on)                                                             \
	do {                                                                                   \
		(on) = access("go", F_OK) != 0;                                                \
		MPI_Bcast(&(on), 1, MPI_INT, 0, comm);                                         \
		if ((round) == 1) {                                                            \
			printf("ready\n");                                                     \
			fflush(stdout);                                                        \
		}                                                                              \
	} while (0)

#endif
