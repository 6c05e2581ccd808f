/*
 * functions.c - looks the functions up in the library by name, and says which failed.
 */
#include "lower/mpi/functions.h"

#include <stddef.h>

#include "lower/runtime.h"

struct mpi_functions mpi;

int mpi_functions_find(void)
{
#define F(name, parameters)                                                                    \
	mpi.name = library_symbol("MPI_" #name);                                               \
	if (!mpi.name)                                                                         \
		return agent_fail("the MPI library has no MPI_" #name);
	MPI_FUNCTIONS(F)
#undef F
#define F(name, parameters) mpi.name = library_symbol("MPI_" #name);
	MPI_LARGE_FUNCTIONS(F)
#undef F
	mpi.get_typed = library_symbol("MPII_Comm_get_attr");
	mpi.set_typed = library_symbol("MPII_Comm_set_attr");
	mpi.type_get_typed = library_symbol("MPII_Type_get_attr");
	mpi.type_set_typed = library_symbol("MPII_Type_set_attr");
	mpi.win_get_typed = library_symbol("MPII_Win_get_attr");
	mpi.win_set_typed = library_symbol("MPII_Win_set_attr");
	mpi.Win_create_c = library_symbol("MPI_Win_create_c");
	mpi.Op_create_c = library_symbol("MPI_Op_create_c");
	mpi.Session_create_errhandler = library_symbol("MPI_Session_create_errhandler");
	mpi.Session_init = library_symbol("MPI_Session_init");
	mpi.Session_get_info = library_symbol("MPI_Session_get_info");
	mpi.Session_get_errhandler = library_symbol("MPI_Session_get_errhandler");
	mpi.Session_set_errhandler = library_symbol("MPI_Session_set_errhandler");
	mpi.Imrecv_c = library_symbol("MPI_Imrecv_c");
	mpi.Irecv_c = library_symbol("MPI_Irecv_c");
	return 0;
}

int mpi_failed(const char *name, int r)
{
	return r ? agent_fail("%s gave error %d", name, r) : 0;
}
