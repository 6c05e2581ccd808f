/*
 * mpi_libraries.h - programs that use MPI: whether they load trecr's library in place of
 * MPICH's, which then is in their lower half (doc/decisions/mpi.md).
 */
#ifndef SUPERVISOR_SPLIT_MPI_LIBRARIES_H
#define SUPERVISOR_SPLIT_MPI_LIBRARIES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/err.h"

/* For opts.h: which MPI library a restart loads into lower halves, "auto", "same", "mpich", "openmpi" or
 * a file with a '/', into a const char *. */
int mpi_library_option(void *field, const char *value, struct err *e);

/* enum mpi_abi (shared/records.h) of the library that a file holds, by its name; 0: it is none. */
unsigned mpi_abi_of_file(const char *path);

/*
 * Which library a restart loads in the place of one of ABI @former: *names gets its names, each ended by 0 and
 * an empty one at the end, at most @room bytes, and the ABI is returned. 0: the former one stays. @option: of
 * mpi_library_option(), NULL is "auto": that of the launcher that has started this process.
 */
unsigned mpi_library_choose(const char *option, unsigned former, char *names, size_t room);

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
