/*
 * openmpi.h - what Open MPI 4 has otherwise than MPICH, whose ABI all else here is of: statuses, and where what is
 * predefined stands among handles.
 */
#ifndef SHARED_MPI_OPENMPI_H
#define SHARED_MPI_OPENMPI_H

#include <stddef.h>
#include <stdint.h>

struct openmpi_status {
	int source, tag, error;
	int cancelled;
	uint64_t count; /* bytes */
};

struct mpich_status {
	int count, count_high; /* bytes; the upper bits above a bit for cancelled */
	int source, tag, error;
};

/*
 * Handles in MPICH's ABI: bits 31 and 30 are 0 if it stands for none, 1 if it is predefined, else it was made, or is
 * one of five datatypes of two parts. Then the kind, and a number.
 */
#define MPI_FIRST_PAIR 0x8c000000u
#define MPI_PAIRS      5
#define MPI_PLACES     (16 * 256)
#define MPI_PLACE(handle)                                                                      \
	(((handle) >> 26 & 0xf) << 8 |                                                         \
		((uint32_t)(handle) >> 30 == 0          ? 0xff                                 \
			: (uint32_t)(handle) >> 30 == 1 ? ((handle)&0xff)                      \
							: (0xf0 | ((handle)&0xf))))

/* Not predefined. */
static inline int is_made(int handle)
{
	return handle < 0 && (uint32_t)handle - MPI_FIRST_PAIR >= MPI_PAIRS;
}

#endif
