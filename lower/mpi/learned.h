/* learned.h - numbers and strings about an object, written at a checkpoint and read at a restart. */
#ifndef LOWER_MPI_LEARNED_H
#define LOWER_MPI_LEARNED_H

#include "shared/mpi/mpi_state.h"

/* 0 or -1. */
int learned_put(struct mpi_learned *l, int64_t number);
int learned_put_ints(struct mpi_learned *l, const int *numbers, uint64_t count);
int learned_put_text(struct mpi_learned *l, const char *text);

/* What was put, in that order. An image is trusted as the program's memory is, of which it is part. */
struct learned_reader {
	const char *at;
};
int64_t learned_get(struct learned_reader *r);
/* An array for free(3), NULL: no memory. */
int *learned_get_ints(struct learned_reader *r, uint64_t count);
const char *learned_get_text(struct learned_reader *r);

#endif
