/* Sessions: what they were given, and their error handlers. What was made of them is made again of MPI_COMM_WORLD, as all is. */
#include "lower/mpi/functions.h"
#include "lower/mpi/mpi_objects.h"
#include "lower/runtime.h"

int session_save(struct mpi_state *s, struct mpi_object *o)
{
	struct mpi_object *handler;
	int info, real, r;

	if (MPI_DO(Session_get_errhandler, o->real, &real))
		return -1;
	handler = mpi_object_of_real(s, real);
	if (handler && MPI_DO(Errhandler_free, &real))
		return -1;
	if (saved_put(&o->saved, handler ? handler->handle : real) < 0 ||
		MPI_DO(Session_get_info, o->real, &info))
		return -1;
	r = info_save(&o->saved, info);
	return MPI_DO(Info_free, &info) ? -1 : r;
}

int session_make(struct mpi_object *o, struct saved_reader *r, int *handler)
{
	int info;

	*handler = (int)saved_get(r);
	if (!mpi.Session_init)
		return agent_fail(
			"it has a session (MPI_Session_init), and the MPI library has none");
	return hints_make(r, &info) < 0 ||
			       MPI_DO(Session_init, info, MPI_ERRORS_RETURN, &o->real) ||
			       MPI_DO(Info_free, &info)
		       ? -1
		       : 0;
}
