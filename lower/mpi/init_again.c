#include "lower/mpi/mpi.h"

#include <stddef.h>
#include <string.h>

#include "lower/mpi/objects.h"
#include "lower/runtime.h"
#include "shared/mpi/state.h"
#include "shared/records.h"

/* The first function that has left what is not saved; NULL: none. */
static const char *find_unsaved(const struct mpi_state *s)
{
	const char *name = s->names;

	for (size_t i = 0; *name; i++, name += strlen(name) + 1)
		if (s->called[i])
			return name;
	return NULL;
}

int mpi_check(void)
{
	struct mpi_state *s = RECORDS->mpi;
	const char *name;

	if (!s)
		return 0;
	if (RECORDS->unsaved[0])
		return agent_fail("it has called %s, and messages between ranks cannot be "
				  "saved yet",
			RECORDS->unsaved);
	name = find_unsaved(s);
	if (!name)
		return s->finalized ? 0 : objects_learn(s);
	return agent_fail(
		"it has called %s, and what that leaves in an MPI library that lies in "
		"the lower half (trecr-run --mpi=lower) cannot be saved yet",
		name);
}

static int mpi_init(const struct mpi_state *s)
{
	int (*init_thread)(int *, char ***, int, int *) = library_symbol("MPI_Init_thread");
	int provided, r;

	if (!init_thread)
		return agent_fail("the MPI library has no MPI_Init_thread");
	r = init_thread(NULL, NULL, s->provided, &provided);
	if (r)
		return agent_fail("MPI_Init_thread gave error %d", r);
	if (provided != s->provided)
		return agent_fail("the MPI library gives the thread level %d here, where the "
				  "program was given %d",
			provided, s->provided);
	return 0;
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
	if (s->initialised && mpi_init(s))
		return -1;
	if (s->finalized)
		return mpi_finish();
	return objects_make(s);
}
