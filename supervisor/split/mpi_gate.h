/*
 * mpi_gate.h - an MPI program, seen from outside while it runs: what it has counted of collective calls, and
 * the gate in front of these (stubs/mpi/collective_gate.c). What is read is the program's to overwrite.
 */
#ifndef SUPERVISOR_SPLIT_MPI_GATE_H
#define SUPERVISOR_SPLIT_MPI_GATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/err.h"
#include "lib/util.h"
#include "shared/mpi/message_records.h"
#include "shared/mpi/mpi_state.h"

struct mpi_gate {
	pid_t pid;             /* the program's process that uses MPI; 0: none does */
	uint64_t at;           /* its struct mpi_state */
	uint32_t beat;         /* not 0: the gate is closed */
	struct mpi_state s;    /* but for what is behind `counts` */
	struct buf counts;     /* struct mpi_count, free ones included */
	struct mpi_messages m; /* but for what is behind `wait` */
	uint64_t polls;        /* m.polls of the last time */
};

/* Look for it in the process @root and its descendants. */
int mpi_gate_find(struct mpi_gate *g, pid_t root, struct err *e);

/* Read what is counted, and what its threads wait for. */
int mpi_gate_read(struct mpi_gate *g, struct err *e);

/* What stands against a checkpoint as one of the ranks of a job, or as the only one: -1 if anything does. To be
 * asked behind mpi_gate_read(). */
int mpi_gate_check(const struct mpi_gate *g, bool of_job, struct err *e);

/* Close the gate, or say that it is still to be closed. */
int mpi_gate_keep_closed(struct mpi_gate *g, struct err *e);
int mpi_gate_set_limit(struct mpi_gate *g, size_t count, uint64_t limit, struct err *e);
/* It stays open if it is. */
void mpi_gate_open(struct mpi_gate *g);

/* Messages to and from each member of the communicator that is counted in g->counts as number @count; the array is
 * the caller's to free, NULL: none are counted. And tell how many have been sent by one of them. */
int mpi_gate_peers(
	const struct mpi_gate *g, size_t count, struct mpi_peer **peers, struct err *e);
int mpi_gate_set_due(
	const struct mpi_gate *g, size_t count, uint32_t peer, uint64_t due, struct err *e);

/* The number of the checkpoint for which operations on windows are completed. */
int mpi_gate_set_meeting(const struct mpi_gate *g, uint32_t meeting, struct err *e);

/* The name of function @call; the caller's to free. */
char *mpi_gate_call_name(const struct mpi_gate *g, uint32_t call);

void mpi_gate_free(struct mpi_gate *g);

#endif
