/*
 * mpi_libraries.c - the option --mpi, and the environment that it stands for.
 */
#include "supervisor/split/mpi_libraries.h"

#include <string.h>

#include "lib/util.h"
#include "supervisor/split/stub_libraries.h"

int mpi_option(void *field, const char *value, struct err *e)
{
	bool lower = !strcmp(value, "lower");

	if (!lower && strcmp(value, "whole"))
		return err_set(e, 0, "must be whole or lower");
	*(enum mpi_use *)field = lower ? MPI_LOWER : MPI_WHOLE;
	return 0;
}

int mpi_prepare(enum mpi_use use, struct err *e)
{
	static const char file[] = "libtrecr-audit.so";
	cleanup_free char *audit = NULL;

	if (use == MPI_WHOLE)
		return 0;
	audit = stubs_find_audit(file);
	if (!audit)
		return err_set(e, 0, "cannot find %s, which --mpi=lower needs", file);
	return stubs_load("mpi", audit, e);
}
