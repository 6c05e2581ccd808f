/* saved_values.h - numbers and strings about an object, written at a checkpoint and read at a restart in
 * the same order. */
#ifndef LOWER_MPI_SAVED_VALUES_H
#define LOWER_MPI_SAVED_VALUES_H

#include "shared/mpi/mpi_state.h"

/* 0 or -1. */
int saved_put(struct mpi_saved_values *v, int64_t number);
int saved_put_ints(struct mpi_saved_values *v, const int *numbers, uint64_t count);
int saved_put_text(struct mpi_saved_values *v, const char *text);

/* What was put, in that order. An image is trusted as the program's memory is, of which it is part. */
struct saved_reader {
	const char *at;
};
int64_t saved_get(struct saved_reader *r);
/* An array for free(3), NULL: no memory. */
int *saved_get_ints(struct saved_reader *r, uint64_t count);
const char *saved_get_text(struct saved_reader *r);

#endif
