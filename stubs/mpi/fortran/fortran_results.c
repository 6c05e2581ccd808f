/* Results that the function for C gives in another way: later, or with a length of the caller's. */
#include <stdlib.h>

#include "stubs/mpi/fortran/fortran.h"

extern int PMPI_Comm_idup(void *comm, void **made, void **request),
	PMPI_Info_get(void *info, const char *key, int length, char *value, int *flag);

/* Open MPI's own library writes the handle again when the request is complete. */
FORTRAN_MPI(comm_idup, COMM_IDUP, Comm_idup,
	(const int *comm, int *made, int *request, int *ierror))
{
	void **in_made = calloc(1, sizeof(*in_made)), *in_request = NULL;
	int gave = in_made ? PMPI_Comm_idup(PMPI_Comm_f2c(*comm), in_made, &in_request)
			   : MPI_ERR_NO_MEM;

	if (!gave) {
		*made = PMPI_Comm_c2f(*in_made);
		*request = PMPI_Request_c2f(in_request);
	}
	if (trecr_mpi_found || gave)
		free(in_made);
	GIVE(gave);
}

FORTRAN_MPI(info_get, INFO_GET, Info_get,
	(const int *info, const char *key, const int *most, char *value, int *flag, int *ierror,
		int length_key, int length_value))
{
	WITH_MEMORY
	char *in_key = STRING_FOR_C(key, length_key);
	char *in_value = exchange_alloc(&memory, *most > 0 ? *most + 1ul : 1);
	int gave;

	NO_MEMORY_GIVES(ierror)
	*in_value = 0;
	gave = PMPI_Info_get(PMPI_Info_f2c(*info), in_key, *most, in_value, flag);
	if (!gave && *flag)
		string_for_fortran(value, length_value, in_value);
	exchange_free(&memory);
	GIVE(gave);
}
