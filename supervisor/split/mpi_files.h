/*
 * split/mpi_files.h - files that a program has opened by MPI_File_open. The descriptors that the library has of them
 * lie in the lower half and are in no image, so their names are read from the program's records.
 */
#ifndef SUPERVISOR_SPLIT_MPI_FILES_H
#define SUPERVISOR_SPLIT_MPI_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/err.h"
#include "supervisor/split/running_mpi.h"

struct mpi_file_name {
	char path[PATH_MAX];
	int flags;    /* of open(2): how it is accessed */
	bool is_ours; /* this rank is the first of all that have it open */
};

/* File number @i of the frozen program behind @m, which has been read. 1; 0: that is none; -1: it cannot be looked at,
 * or its name does not lead to it any more. Numbers end at mpi_files_count(). */
int mpi_file_name(
	const struct running_mpi *m, uint32_t i, struct mpi_file_name *name, struct err *e);
int mpi_files_count(const struct running_mpi *m, uint32_t *count, struct err *e);

#endif
