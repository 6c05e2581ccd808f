/*
 * launcher_variables.h - variables of the environment by which a launcher tells an MPI program which rank
 * it is, and others that MPI libraries look at. A restart takes them from the launcher that begins it.
 */
#ifndef SHARED_LAUNCHER_VARIABLES_H
#define SHARED_LAUNCHER_VARIABLES_H

#include "shared/raw.h"

static inline int variable_begins(const char *variable, const char *const *prefixes)
{
	for (; *prefixes; prefixes++)
		if (raw_starts(variable, *prefixes))
			return 1;
	return 0;
}

/* By which an MPI program finds the supervisor of its rank: the name of a socket. */
#define SUPERVISOR_VARIABLE "TRECR_SUPERVISOR"

/* Of one start of a job: without a launcher there are none. */
static inline int variable_is_launchers(const char *variable)
{
	static const char *const prefixes[] = {"PMI_", "PMI2_", "PMIX_", "HYDI_", "HYDRA_",
		"MPI_LOCAL", "MPIR_CVAR_CH3_INTERFACE_HOSTNAME=", "OMPI_", "PRTE_", "PALS_",
		"SLURM_", SUPERVISOR_VARIABLE "=", NULL};

	return variable_begins(variable, prefixes);
}

/* What a user has set for the library: it is as before unless it is set anew. */
static inline int variable_is_librarys(const char *variable)
{
	static const char *const prefixes[] = {"MPICH_", "MPIR_", "UCX_", "FI_", NULL};

	return variable_begins(variable, prefixes);
}

static inline int variable_is_same(const char *a, const char *b)
{
	while (*a == *b && *a != '=' && *a)
		a++, b++;
	return *a == *b;
}

#endif
