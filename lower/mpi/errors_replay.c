/* errors_replay.c - classes, codes and strings of errors by the program's calls, which must give the same numbers. */
#include "lower/mpi/mpi_objects.h"

#include "lower/mpi/functions.h"
#include "lower/runtime.h"

/* MPI 4.1 has calls that older libraries have not, which have not been made with those. */
/* By either name. */
static int remove_again(const char *name, const char *before, int number)
{
	int (*remove)(int) = library_symbol(name);

	if (!remove)
		remove = library_symbol(before);
	return remove ? mpi_failed(name, remove(number))
		      : agent_fail("the MPI library has no %s, which the program has called",
				name);
}

static int call_again(const struct mpi_error_call *c, int *value)
{
	switch (c->kind) {
	case MPI_ERROR_CLASS:
		return MPI_DO(Add_error_class, value);
	case MPI_ERROR_CODE:
		return MPI_DO(Add_error_code, c->of, value);
	case MPI_ERROR_STRING:
		return MPI_DO(Add_error_string, c->of, c->text);
	case MPI_ERROR_CLASS_REMOVED:
		return remove_again("MPI_Remove_error_class", "MPIX_Delete_error_class", c->of);
	case MPI_ERROR_CODE_REMOVED:
		return remove_again("MPI_Remove_error_code", "MPIX_Delete_error_code", c->of);
	}
	return remove_again("MPI_Remove_error_string", "MPIX_Delete_error_string", c->of);
}

int errors_make(const struct mpi_state *s)
{
	for (const struct mpi_error_call *c = s->error_calls; c; c = c->next) {
		int value = c->value;

		if (call_again(c, &value) < 0)
			return -1;
		if (value != c->value && openmpi_is_used())
			openmpi_error_is(value, c->value);
		else if (value != c->value)
			return agent_fail("the MPI library gives an error that the program "
					  "adds the number %d here, where it was %d",
				value, c->value);
	}
	return 0;
}
