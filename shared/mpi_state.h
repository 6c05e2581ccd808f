/*
 * mpi_state.h - what makes the MPI library of the lower half again: kept by the stub in the
 * upper half, read by the lower half at a checkpoint and a restart.
 */
#ifndef SHARED_MPI_STATE_H
#define SHARED_MPI_STATE_H

#include <stdint.h>

struct mpi_state {
	int32_t initialised, finalized;
	int32_t provided;  /* the thread level that the program was given */
	uint64_t main;     /* FS base of the thread that has initialised it */
	const char *names; /* of all functions, each ended by 0, and an empty one at the end */
	const uint8_t *called; /* one each: 1, it was called and has left what is not saved */
};

#endif
