/*
 * mpi_check.c - at a checkpoint: whether there is anything in the library that could not be made again.
 */
#include "lower/mpi/mpi.h"

#include <string.h>

#include "lower/mpi/functions.h"
#include "lower/mpi/mpi_objects.h"
#include "lower/mpi/requests_replay.h"
#include "lower/runtime.h"
#include "shared/mpi/mpi_state.h"
#include "shared/records.h"

/* The first function that has left what is not saved; NULL: none. */
static const char *find_unsaved(const struct mpi_state *s)
{
	const char *name = s->names;

	for (size_t i = 0; *name; i++, name += strlen(name) + 1)
		if (s->called[i] == MPI_CALLED_UNSAVED)
			return name;
	return NULL;
}

static int check_requests(struct mpi_state *s)
{
	int r;

	if (!s->initialised)
		return 0;
	if (mpi_functions_find() < 0 || agent_check_wanted())
		return -1;
	s->reserve(1);
	r = requests_check(s);
	s->reserve(0);
	return r;
}

int mpi_check(void)
{
	struct mpi_state *s = RECORDS->mpi;
	const char *name;

	if (!s)
		return 0;
	if (s->error_calls_lost)
		return agent_fail("there was no memory to keep an error that it has added");
	name = find_unsaved(s);
	if (!name && s->finalized)
		return 0;
	if (!name)
		return check_requests(s) || objects_save_unless_begun(s) ? -1 : 0;
	return agent_fail(
		"it has called %s, and what that leaves in an MPI library that lies in "
		"the lower half (trecr-run --mpi=lower) cannot be saved yet",
		name);
}
