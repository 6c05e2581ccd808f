/*
 * mpi_ranks.h - whether the programs of all ranks of a job initialise MPI by trecr's stub
 * (doc/decisions/mpi.md, "Ranks without the stub").
 *
 * Rank 0 decides it for all, and the others read its verdict in its member's file. Of MPI such a file says
 *
 *	begun		how often the member's program has begun to initialise MPI, by the stub
 *	verdict		of rank 0: twice the number of the start of MPI that it is about, and one more if all ranks have the
 *			stub. One number, of which mostly one digit changes: who reads while it is written sees it old or new
 *	refused		never count this member in: several processes use its supervisor, or it does not wait for rank 0
 */
#ifndef SUPERVISOR_JOB_MPI_RANKS_H
#define SUPERVISOR_JOB_MPI_RANKS_H

#include "supervisor/job/member_files.h"

enum mpi_ranks {
	MPI_RANKS_LATER, /* not known yet: to be asked again in a moment */
	MPI_RANKS_ALL,
	MPI_RANKS_NOT_ALL,
};

/* Process @program, 0: not to be seen from here, initialises MPI by the stub. */
int mpi_ranks_begin(struct job *job, pid_t program, struct err *e);

/* @program has initialised MPI, and asks whether all ranks have the stub. Takes a few milliseconds, and what one @probe
 * takes. */
enum mpi_ranks mpi_ranks_ask(struct job *job, pid_t program, job_probe *probe);

#endif
