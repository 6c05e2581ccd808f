/*
 * init_replay.c - the order in which a lower half of MPI is made again: MPI_Init, then
 * communicators, groups and datatypes by the calls on record.
 */
#include "lower/mpi/mpi.h"

#include <stdlib.h>

#include "lower/mpi/files_replay.h"
#include "lower/mpi/functions.h"
#include "lower/mpi/library_check.h"
#include "lower/mpi/mpi_objects.h"
#include "lower/mpi/requests_replay.h"
#include "lower/runtime.h"
#include "shared/mpi/mpi_state.h"
#include "shared/records.h"

/* Before the library waits for ranks that do not come. */
static int check_size(const struct mpi_state *s)
{
	const char *started = getenv("PMI_SIZE");

	if (!started)
		started = getenv("OMPI_COMM_WORLD_SIZE");
	if ((started ? atoi(started) : 1) == s->size)
		return 0;
	return agent_fail("the number of ranks was %d, and the launcher has started %s",
		s->size, started ? started : "1");
}

static int check_rank(const struct mpi_state *s)
{
	int rank, size;

	if (mpi_functions_find() < 0 || MPI_DO(Comm_rank, MPI_COMM_WORLD, &rank) ||
		MPI_DO(Comm_size, MPI_COMM_WORLD, &size))
		return -1;
	if (rank == s->rank && size == s->size)
		return 0;
	return agent_fail("it was rank %d of %d, and would be rank %d of %d here", s->rank,
		s->size, rank, size);
}

static int mpi_init(struct mpi_state *s)
{
	int (*init_thread)(int *, char ***, int, int *) = library_symbol("MPI_Init_thread");
	int provided, r;

	if (!init_thread)
		return agent_fail("the MPI library has no MPI_Init_thread");
	if (check_size(s) < 0 || library_check(s) < 0)
		return -1;
	r = init_thread(NULL, NULL, s->provided, &provided);
	if (r)
		return agent_fail("MPI_Init_thread gave error %d", r);
	if (provided < s->provided)
		return agent_fail("the MPI library gives the thread level %d here, where the "
				  "program was given %d",
			provided, s->provided);
	return check_rank(s) < 0 ? -1 : library_check_limits(s);
}

static int mpi_finish(void)
{
	int (*mpi_finalize)(void) = library_symbol("MPI_Finalize");
	int r = mpi_finalize ? mpi_finalize() : -1;

	return r ? agent_fail("MPI_Finalize gave error %d", r) : 0;
}

int mpi_replay(void)
{
	struct mpi_state *s = RECORDS->mpi;

	if (!s)
		return 0;
	s->gate = 0; /* threads that wait in front of a call continue */
	if (connection_accept() < 0 || (s->initialised ? mpi_init(s) : library_check(s)) < 0)
		return -1;
	if (s->finalized)
		return mpi_finish();
	if (objects_make(s) < 0 || errors_make(s) < 0 || files_make(s) < 0)
		return -1;
	return requests_make(s) < 0 ? -1 : handlers_make(s);
}
