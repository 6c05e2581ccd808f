/*
 * mpi_libraries.h - programs that use MPI: whether they load trecr's library in place of
 * MPICH's, which then is in their lower half (doc/decisions/mpi.md).
 */
#ifndef SUPERVISOR_SPLIT_MPI_LIBRARIES_H
#define SUPERVISOR_SPLIT_MPI_LIBRARIES_H

#include <stdbool.h>

#include "lib/err.h"

enum mpi_use {
	MPI_AUTO, /* lower if a launcher, not Open MPI's, has started this process for one rank, else whole */
	MPI_WHOLE, /* they load what they would */
	MPI_LOWER,
};

/* For opts.h: "auto", "whole" or "lower" into an enum mpi_use. */
int mpi_option(void *field, const char *value, struct err *e);

/* What MPI_AUTO comes to; @is_rank: a launcher has started this process for one rank. */
enum mpi_use mpi_choose(enum mpi_use use, bool is_rank);

/* For programs that this process starts from now on: by its environment. */
int mpi_prepare(enum mpi_use use, struct err *e);

#endif
