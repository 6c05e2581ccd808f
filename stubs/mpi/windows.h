/*
 * windows.h - the program's windows (shared/mpi/window_records.h): made and freed by windows.c, synchronised by
 * window_epochs.c, reached by window_operations.c.
 */
#ifndef STUBS_MPI_WINDOWS_H
#define STUBS_MPI_WINDOWS_H

#include "shared/mpi/window_records.h"
#include "stubs/mpi/handle_table.h"

/* In a process that has just come to have records. */
STUB_HIDDEN void windows_reset(void);

/* The window that the program means; NULL: none of ours, so that the real library does all. */
static inline struct mpi_window *window_of(MPI_Win win)
{
	struct mpi_object *o = object_of(win);

	return o && o->kind == MPI_WINDOW ? o->window : NULL;
}

/* The program's call fails: its error handler is told. Returns @error. */
STUB_HIDDEN int window_failed(MPI_Win win, int error);

#endif
