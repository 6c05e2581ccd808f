/*
 * window_control.h - what the windows of the same ranks have in common: one window of the library's for what ranks tell
 * each other of their epochs, and one communicator (struct mpi_window_control).
 *
 * All functions are for guarded bodies.
 */
#ifndef STUBS_MPI_WINDOW_CONTROL_H
#define STUBS_MPI_WINDOW_CONTROL_H

#include "stubs/mpi/windows.h"

/* In a process that has just come to have records. */
STUB_HIDDEN void window_controls_reset(void);

/* In a collective call on @comm, whose ranks are those of @w: give it a place, with words that are zero, and a number
 * that is the same in all ranks. 0, or an error of MPI's, of which no handler has been told. */
STUB_HIDDEN int window_control_join(struct mpi_window *w, MPI_Comm comm, uint64_t *number);

/* In a collective call of all ranks of @w that frees it: nobody uses the window any more, and its place is given
 * back. */
STUB_HIDDEN void window_control_leave(struct mpi_window *w);

/* In a collective call of all ranks of @w: it returns when all have called it. 0, or an error of MPI's. */
STUB_HIDDEN int window_control_meet(const struct mpi_window *w);

#endif
