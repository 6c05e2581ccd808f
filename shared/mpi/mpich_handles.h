/*
 * mpich_handles.h - statuses and handles of MPICH's ABI, which are exchanged for those of another one.
 */
#ifndef SHARED_MPI_MPICH_HANDLES_H
#define SHARED_MPI_MPICH_HANDLES_H

#include <stdint.h>

struct mpich_status {
	int count, count_high; /* bytes; the upper bits above a bit for cancelled */
	int source, tag, error;
};

/*
 * Bits 31 and 30 of a handle are 0 if it stands for none, 1 if it is predefined, else it was made, or is one of five
 * datatypes of two parts. Then the kind, and a number.
 */
#define MPI_FIRST_PAIR 0x8c000000u
#define MPI_PAIRS      5

/* Not predefined. */
static inline int is_made(int handle)
{
	return handle < 0 && (uint32_t)handle - MPI_FIRST_PAIR >= MPI_PAIRS;
}

#endif
