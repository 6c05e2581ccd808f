/*
 * Functions of the program that the real library calls: operations and error handlers. They are given
 * handles, so what the library is given is a function of ours, one for each of the program's.
 */
#include "shared/raw.h"
#include "stubs/crossing/crossing.h"
#include "shared/mpi/callbacks.h"
#include "stubs/mpi/files.h"
#include "stubs/mpi/handle_table.h"

#include "mpi.index.h"

typedef void op_function(void *in, void *out, void *count, MPI_Datatype *type);
typedef void error_function(int *handle, int *code, long first, long second);
typedef void file_error_function(void **file, int *code, long first, long second);

extern STUB_HIDDEN char mpi_op_thunks[], mpi_error_thunks[], mpi_file_error_thunks[];
STUB_HIDDEN void mpi_op_called(
	void *in, void *out, void *count, MPI_Datatype *type, unsigned which);
STUB_HIDDEN void mpi_error_called(
	int *handle, int *code, long first, long second, unsigned which);
STUB_HIDDEN void mpi_file_error_called(
	void **file, int *code, long first, long second, unsigned which);

static void *op_functions[MPI_CALLBACKS], *error_functions[MPI_CALLBACKS],
	*file_error_functions[MPI_CALLBACKS];

STUB_HIDDEN void mpi_op_called(
	void *in, void *out, void *count, MPI_Datatype *type, unsigned which)
{
	MPI_Datatype given = handle_of(*type);

	((op_function *)op_functions[which])(in, out, count, &given);
}

STUB_HIDDEN void mpi_error_called(
	int *handle, int *code, long first, long second, unsigned which)
{
	int given = handle_of(*handle);

	tell_error(*code);
	((error_function *)error_functions[which])(&given, code, first, second);
}

STUB_HIDDEN void mpi_file_error_called(
	void **file, int *code, long first, long second, unsigned which)
{
	void *given = file_handle_of(*file);

	((file_error_function *)file_error_functions[which])(&given, code, first, second);
}

/* What the library is to call for @function. None is given back. NULL: there are too many. */
static void *lower_function(void *function, void **functions, char *thunks)
{
	void *thunk = NULL;

	if (!function)
		return NULL;
	raw_lock(&mpi_state.lock);
	for (unsigned i = 0; i < MPI_CALLBACKS && !thunk; i++) {
		if (functions[i] && functions[i] != function)
			continue;
		functions[i] = function;
		thunk = thunks + i * MPI_CALLBACK_SIZE;
	}
	raw_unlock(&mpi_state.lock);
	return crossing_callback_pointer(thunk);
}

/* ---- operations ---- */

static int create_op(unsigned index, void *function, int commutes, MPI_Op *op)
{
	void *thunk = lower_function(function, op_functions, mpi_op_thunks);
	const uint64_t words[16] = {(uint64_t)thunk, commutes, (uint64_t)op};
	struct mpi_object *o;
	int r;

	if (function && !thunk)
		return MPI_ERR_INTERN;
	r = mpi_perform(index, words);
	o = r ? NULL : object_of(*op);
	if (o) {
		o->function = thunk;
		o->commutes = commutes != 0;
		o->large = index == INDEX_MPI_Op_create_c;
	}
	return r;
}

BY_HAND(MPI_Op_create, (void *function, int commutes, MPI_Op *op));
int body_MPI_Op_create(void *function, int commutes, MPI_Op *op)
{
	return create_op(INDEX_MPI_Op_create, function, commutes, op);
}

BY_HAND(MPI_Op_create_c, (void *function, int commutes, MPI_Op *op));
int body_MPI_Op_create_c(void *function, int commutes, MPI_Op *op)
{
	return create_op(INDEX_MPI_Op_create_c, function, commutes, op);
}

/* ---- error handlers ---- */

/* A handler that the program has freed, and that the library still has; the next with its function
 * takes it over, so that there are never more than functions or than there were at a time. */
static int is_freed(const struct mpi_object *o, const void *function, enum mpi_subject subject)
{
	return o->real && o->kind == MPI_ERRHANDLER && !o->references &&
	       o->function == function && o->subject == subject;
}

static struct mpi_object *freed_handler(const void *function, enum mpi_subject subject)
{
	struct mpi_state *s = &mpi_state;
	struct mpi_object *found = NULL;

	raw_lock(&s->lock);
	for (uint32_t i = 0; i < s->count && !found; i++)
		if (is_freed(s->objects[i], function, subject))
			found = s->objects[i];
	if (found)
		found->references = 1;
	raw_unlock(&s->lock);
	return found;
}

static int create_handler(
	unsigned index, enum mpi_subject subject, void *function, MPI_Errhandler *handler)
{
	void *thunk =
		subject == MPI_OF_FILE
			? lower_function(function, file_error_functions, mpi_file_error_thunks)
			: lower_function(function, error_functions, mpi_error_thunks);
	const uint64_t words[16] = {(uint64_t)thunk, (uint64_t)handler};
	struct mpi_object *o;
	int r;

	if (function && !thunk)
		return MPI_ERR_INTERN;
	o = thunk ? freed_handler(thunk, subject) : NULL;
	if (o) {
		*handler = o->handle;
		return 0;
	}
	r = mpi_perform(index, words);
	o = r ? NULL : object_of(*handler);
	if (o) {
		o->function = thunk;
		o->subject = subject;
	}
	return r;
}

BY_HAND(MPI_Comm_create_errhandler, (void *function, MPI_Errhandler *handler));
int body_MPI_Comm_create_errhandler(void *function, MPI_Errhandler *handler)
{
	return create_handler(INDEX_MPI_Comm_create_errhandler, MPI_OF_COMM, function, handler);
}

BY_HAND(MPI_Errhandler_create, (void *function, MPI_Errhandler *handler));
int body_MPI_Errhandler_create(void *function, MPI_Errhandler *handler)
{
	return create_handler(INDEX_MPI_Errhandler_create, MPI_OF_COMM, function, handler);
}

BY_HAND(MPI_Win_create_errhandler, (void *function, MPI_Errhandler *handler));
int body_MPI_Win_create_errhandler(void *function, MPI_Errhandler *handler)
{
	return create_handler(
		INDEX_MPI_Win_create_errhandler, MPI_OF_WINDOW, function, handler);
}

BY_HAND(MPI_File_create_errhandler, (void *function, MPI_Errhandler *handler));
int body_MPI_File_create_errhandler(void *function, MPI_Errhandler *handler)
{
	return create_handler(INDEX_MPI_File_create_errhandler, MPI_OF_FILE, function, handler);
}

BY_HAND(MPI_Session_create_errhandler, (void *function, MPI_Errhandler *handler));
int body_MPI_Session_create_errhandler(void *function, MPI_Errhandler *handler)
{
	return create_handler(
		INDEX_MPI_Session_create_errhandler, MPI_OF_SESSION, function, handler);
}
