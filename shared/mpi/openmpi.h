/*
 * openmpi.h - what Open MPI 4 has otherwise than MPICH, whose ABI all else here is of: statuses, and where what is
 * predefined stands among handles.
 */
#ifndef SHARED_MPI_OPENMPI_H
#define SHARED_MPI_OPENMPI_H

#include <stddef.h>
#include <stdint.h>

#include "shared/mpi/mpich_handles.h"

struct openmpi_status {
	int source, tag, error;
	int cancelled;
	uint64_t count; /* bytes */
};

/* The place of what is predefined, for a handle of MPICH's: by its kind and its number. */
#define MPI_PLACES (16 * 256)
#define MPI_PLACE(handle)                                                                      \
	(((handle) >> 26 & 0xf) << 8 |                                                         \
		((uint32_t)(handle) >> 30 == 0          ? 0xff                                 \
			: (uint32_t)(handle) >> 30 == 1 ? ((handle)&0xff)                      \
							: (0xf0 | ((handle)&0xf))))

#endif
