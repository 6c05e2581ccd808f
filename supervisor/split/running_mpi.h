/*
 * running_mpi.h - the state of an MPI program with the library in its lower half, read and changed from outside while
 * the program runs: what it has counted of collective calls and messages, what its threads wait for, and the gate
 * in front of collective calls (stubs/mpi/collective_gate.c). What is read is the program's to overwrite.
 */
#ifndef SUPERVISOR_SPLIT_RUNNING_MPI_H
#define SUPERVISOR_SPLIT_RUNNING_MPI_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"
#include "lib/util.h"
#include "shared/mpi/message_records.h"
#include "shared/mpi/mpi_state.h"

struct running_mpi {
	pid_t pid;   /* the program's process that uses MPI; 0: none does */
	uint64_t at; /* its struct mpi_state */
	uint32_t
		heartbeat; /* what the gate was closed with last: each time another number; 0: it is open */
	struct mpi_state state;       /* but for what is behind `counts` */
	struct buf counts;            /* struct mpi_count, free ones included */
	struct mpi_messages messages; /* but for what is behind `wait` */
	uint64_t polls;               /* messages.polls of the last time */
};

/* Look for it in the process @root and its descendants. */
int running_mpi_find(struct running_mpi *m, pid_t root, struct err *e);

/* Read what is counted, and what its threads wait for. */
int running_mpi_read(struct running_mpi *m, struct err *e);

/* What stands against a checkpoint as one of the ranks of a job, or as the only one: -1 if anything does. To be
 * asked behind running_mpi_read(). */
int running_mpi_check(const struct running_mpi *m, bool of_job, struct err *e);

/* Close the gate, or tell the program that it is still closed on purpose. */
int running_mpi_keep_gate_closed(struct running_mpi *m, struct err *e);
int running_mpi_set_limit(struct running_mpi *m, size_t count, uint64_t limit, struct err *e);
/* Nothing to be done if it is open. */
void running_mpi_open_gate(struct running_mpi *m);

/* Messages to and from each member of the communicator that is number @count in m->counts. The array is the
 * caller's to free; NULL: none are counted. */
int running_mpi_peers(
	const struct running_mpi *m, size_t count, struct mpi_peer **peers, struct err *e);
/* Tell the program how many messages that member @peer has sent to it there. */
int running_mpi_set_due(
	const struct running_mpi *m, size_t count, uint32_t peer, uint64_t due, struct err *e);

/* The number of the checkpoint for which operations on windows are completed. */
int running_mpi_set_drain_round(
	const struct running_mpi *m, uint32_t drain_round, struct err *e);

/* The name of the MPI function that has number @call in the API; the caller's to free. */
char *running_mpi_call_name(const struct running_mpi *m, uint32_t call);

void running_mpi_free(struct running_mpi *m);

#endif
