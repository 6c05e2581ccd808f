/*
 * mpi_records.h - what a rank had of its MPI library, where that lies in the lower half: from the state that
 * the stub keeps in the rank's memory (shared/mpi/mpi_state.h). Other ranks have nothing to show.
 */
#ifndef TOOLS_INSPECT_MPI_RECORDS_H
#define TOOLS_INSPECT_MPI_RECORDS_H

#include <stdbool.h>

#include "ckpt/store.h"
#include "lib/json.h"
#include "lib/util.h"
#include "shared/mpi/mpi_state.h"

/* A communicator within one group, as one rank has counted what it does on it. */
struct mpi_communicator {
	struct mpi_count count;
	char call
		[64]; /* the name of the collective call that it entered last, or waits for; "": none */
};

struct mpi_records {
	struct mpi_state state;
	struct buf communicators;         /* struct mpi_communicator */
	uint64_t objects[MPI_KEYVAL + 1]; /* that the program holds, by kind */
};

/* Of process number @process of @c; false: there is nothing of MPI. To be freed, then, too. */
bool mpi_records_read(const struct checkpoint *c, size_t process, struct mpi_records *r);
void mpi_records_free(struct mpi_records *r);

/* "MPI_COMM_WORLD"; "0.3" of the third communicator whose first rank is rank 0 of that one. */
#define MPI_NUMBER_TEXT 32
const char *mpi_number_text(uint64_t number, char text[MPI_NUMBER_TEXT]);

void mpi_text(const struct checkpoint *c, size_t process, struct buf *out);
void mpi_json(const struct checkpoint *c, size_t process, struct json *j);

#endif
