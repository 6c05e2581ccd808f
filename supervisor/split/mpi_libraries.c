/*
 * mpi_libraries.c - the option --mpi, and the environment that it stands for.
 */
#include "supervisor/split/mpi_libraries.h"

#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "supervisor/split/stub_libraries.h"

#define AUDIT "libtrecr-audit.so"

int mpi_option(void *field, const char *value, struct err *e)
{
	static const char *const names[] = {"auto", "whole", "lower"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(value, names[i])) {
			*(enum mpi_use *)field = i;
			return 0;
		}
	return err_set(e, 0, "must be auto, whole or lower");
}

enum mpi_use mpi_choose(enum mpi_use use, bool is_rank)
{
	cleanup_free char *audit = NULL;

	if (use != MPI_AUTO)
		return use;
	/* Open MPI 1 has a libmpi.so.12, too, which is not of MPICH's ABI. */
	audit = is_rank && !getenv("OMPI_COMM_WORLD_RANK") ? stubs_find_audit(AUDIT) : NULL;
	return audit ? MPI_LOWER : MPI_WHOLE;
}

int mpi_prepare(enum mpi_use use, struct err *e)
{
	cleanup_free char *audit = NULL;

	if (use != MPI_LOWER)
		return 0;
	audit = stubs_find_audit(AUDIT);
	if (!audit)
		return err_set(e, 0, "cannot find " AUDIT ", which --mpi=lower needs");
	return stubs_load("mpi", audit, e);
}
