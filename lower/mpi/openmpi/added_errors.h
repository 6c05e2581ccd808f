/*
 * added_errors.h - classes and codes of errors that the program adds: they have the numbers that MPICH 4.0 gives in
 * the same order of calls, so that they stay when another library is below.
 */
#ifndef LOWER_MPI_OPENMPI_ADDED_ERRORS_H
#define LOWER_MPI_OPENMPI_ADDED_ERRORS_H

#define ADDED_NONE 0x3fffffff /* MPI_LASTUSEDCODE before there is one */

/* Whether one more class can be added. */
int added_error_has_class(void);

/* The number of what the library has added as @own: a code of @class, or a class (0). -1: there are too many. */
int added_error(int own, int class);

/* Errors exchanged: also predefined ones. */
int added_error_own(int error);
int added_error_theirs(int error);

/* What MPI_LASTUSEDCODE is. */
int added_error_last(void);

#endif
