/* Where Open MPI's library is below, windows and files are its own, and it keeps less than MPICH's. */
#include "lower/mpi/library_check.h"

#include "lower/mpi/functions.h"
#include "lower/mpi/mpi_objects.h"
#include "lower/runtime.h"
#include "shared/mpi/file_records.h"

#define BACK                                                                                   \
	"which Open MPI's library cannot be given at a restart: restart it under MPICH's "     \
	"launcher"

static int check_objects(const struct mpi_state *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct mpi_object *o = s->objects[i];

		if (!o->real)
			continue;
		if (o->kind == MPI_WINDOW)
			return agent_fail(
				"it has a window (MPI_Win_create and its like), " BACK);
		if (o->kind == MPI_SESSION)
			return agent_fail("it has a session (MPI_Session_init), " BACK);
		if (o->kind == MPI_ERRHANDLER && o->subject == MPI_OF_SESSION)
			return agent_fail("it has an error handler of sessions, " BACK);
		if (o->kind == MPI_OP && o->large)
			return agent_fail("it has an operation of MPI_Op_create_c, " BACK);
		if (o->kind == MPI_KEYVAL && o->attribute_type && o->attributes)
			return agent_fail(
				"it has an attribute that was set from Fortran, " BACK);
	}
	return 0;
}

static int check_files(const struct mpi_files *f)
{
	for (uint32_t i = 0; i < f->used; i++)
		if (f->slots[i].file.real)
			return agent_fail("it has a file open (MPI_File_open), " BACK);
	return 0;
}

int library_check(struct mpi_state *s)
{
	int before = s->lower_is_openmpi;

	s->lower_is_openmpi = openmpi_is_used();
	if (before || !s->lower_is_openmpi || s->finalized)
		return 0;
	return check_objects(s) || check_files(s->files) ? -1 : 0;
}

int library_check_limits(const struct mpi_state *s)
{
	enum { TAG_UB = 0x64400001 };
	int *limit = NULL, flag = 0;

	if (MPI_DO(Comm_get_attr, MPI_COMM_WORLD, TAG_UB, &limit, &flag))
		return -1;
	if (!flag || *limit >= s->tag_ub)
		return 0;
	return agent_fail("the MPI library has tags up to %d (MPI_TAG_UB) here, where the "
			  "program was told %d: restart it with a library that has as many "
			  "(trecr-restart --mpi=FILE)",
		*limit, s->tag_ub);
}
