/*
 * windows_shared.h - memory that the ranks of a window share (MPI_Win_allocate_shared): the program's, for which all
 * ranks map one file (shared/shared_window.h).
 */
#ifndef STUBS_MPI_WINDOWS_SHARED_H
#define STUBS_MPI_WINDOWS_SHARED_H

#include "stubs/mpi/windows.h"

struct window_memory {
	void *memory; /* mapped: the head, and the parts of the ranks */
	uint64_t mapped;
	struct mpi_window_part *parts; /* by rank; free() */
	int32_t size;
};

/* In a guarded body, a collective call of all ranks of @comm, in which this one has @bytes. 1: all ranks have mapped
 * the memory; 0: none has, as there is no room, or the ranks are not on one node. */
int window_memory_share(
	struct window_memory *m, MPI_Comm comm, int64_t bytes, int64_t unit, MPI_Info info);

/* Whom the memory that begins at @memory belongs to is not any more what its head says. */
void window_memory_freed(void *memory);

#endif
