/* What is given functions to call: operations, error handlers, generalised requests, data representations. */
#include <stdlib.h>

#include "shared/mpi/callbacks.h"
#include "shared/raw.h"
#include "stubs/mpi/fortran/fortran.h"

/* ---- operations and error handlers: a trampoline for each ---- */

typedef void op_function(void *in, void *out, int *count, int *type);
typedef void error_function(int *handle, int *code, long first, long second);

extern STUB_HIDDEN char fortran_op_thunks[], fortran_comm_error_thunks[],
	fortran_win_error_thunks[], fortran_file_error_thunks[];

/* By the number that a thunk hands on; there may be several calls at a time, so none is given back. */
static struct functions {
	char *thunks;
	void *given[MPI_CALLBACKS];
} ops = {.thunks = fortran_op_thunks}, comm_handlers = {.thunks = fortran_comm_error_thunks},
  win_handlers = {.thunks = fortran_win_error_thunks},
  file_handlers = {.thunks = fortran_file_error_thunks};

/* NULL: there are too many. */
static void *thunk_of(struct functions *f, void *function)
{
	static uint32_t lock;
	void *thunk = NULL;

	raw_lock(&lock);
	for (unsigned i = 0; i < MPI_CALLBACKS && !thunk; i++) {
		if (f->given[i] && f->given[i] != function)
			continue;
		f->given[i] = function;
		thunk = f->thunks + i * MPI_CALLBACK_SIZE;
	}
	raw_unlock(&lock);
	return thunk;
}

STUB_HIDDEN void fortran_op_called(
	void *in, void *out, int *count, void **type, unsigned which);
void fortran_op_called(void *in, void *out, int *count, void **type, unsigned which)
{
	int number = PMPI_Type_c2f(*type);

	((op_function *)ops.given[which])(in, out, count, &number);
}

#define ERROR_CALLED(name, number)                                                             \
	STUB_HIDDEN void fortran_##name##_error_called(                                        \
		void **handle, int *code, long first, long second, unsigned which);            \
	void fortran_##name##_error_called(                                                    \
		void **handle, int *code, long first, long second, unsigned which)             \
	{                                                                                      \
		int fortrans = number(*handle);                                                \
                                                                                               \
		((error_function *)name##_handlers.given[which])(                              \
			&fortrans, code, first, second);                                       \
	}
ERROR_CALLED(comm, PMPI_Comm_c2f)
ERROR_CALLED(win, PMPI_Win_c2f)
ERROR_CALLED(file, PMPI_File_c2f)

extern int PMPI_Op_create(void *function, int commutes, void **op);

FORTRAN_MPI(op_create, OP_CREATE, Op_create,
	(void *function, const int *commutes, int *op, int *ierror))
{
	void *thunk = thunk_of(&ops, function), *made = NULL;
	int gave = thunk ? PMPI_Op_create(thunk, *commutes != 0, &made) : MPI_ERR_NO_MEM;

	if (!gave)
		*op = PMPI_Op_c2f(made);
	GIVE(gave);
}

typedef int create_handler_function(void *function, void **handler);
extern create_handler_function PMPI_Errhandler_create, PMPI_Comm_create_errhandler,
	PMPI_Win_create_errhandler, PMPI_File_create_errhandler;

static void create_handler(create_handler_function *create, struct functions *f, void *function,
	int *handler, int *ierror)
{
	void *thunk = thunk_of(f, function), *made = NULL;
	int gave = thunk ? create(thunk, &made) : MPI_ERR_NO_MEM;

	if (!gave)
		*handler = PMPI_Errhandler_c2f(made);
	GIVE(gave);
}

#define HANDLERS(name, upper, own, functions)                                                  \
	FORTRAN_MPI(name, upper, own, (void *function, int *handler, int *ierror))             \
	{                                                                                      \
		create_handler(PMPI_##own, &(functions), function, handler, ierror);           \
	}
HANDLERS(errhandler_create, ERRHANDLER_CREATE, Errhandler_create, comm_handlers)
HANDLERS(comm_create_errhandler, COMM_CREATE_ERRHANDLER, Comm_create_errhandler, comm_handlers)
HANDLERS(win_create_errhandler, WIN_CREATE_ERRHANDLER, Win_create_errhandler, win_handlers)
HANDLERS(file_create_errhandler, FILE_CREATE_ERRHANDLER, File_create_errhandler, file_handlers)

/* ---- generalised requests ---- */

struct request_functions {
	void (*query)(const MPI_Aint *extra, int *status, int *ierror);
	void (*free)(const MPI_Aint *extra, int *ierror);
	void (*cancel)(const MPI_Aint *extra, const int *complete, int *ierror);
	MPI_Aint extra;
};

static int request_queried(void *extra, int *status)
{
	const struct request_functions *f = extra;
	int error = 0;

	f->query(&f->extra, status, &error);
	return error;
}

static int request_freed(void *extra)
{
	struct request_functions *f = extra;
	int error = 0;

	f->free(&f->extra, &error);
	free(f);
	return error;
}

static int request_cancelled(void *extra, int complete)
{
	const struct request_functions *f = extra;
	int error = 0;

	f->cancel(&f->extra, &complete, &error);
	return error;
}

extern int PMPI_Grequest_start(int (*query)(void *, int *), int (*free)(void *),
	int (*cancel)(void *, int), void *extra, void **request);

FORTRAN_MPI(grequest_start, GREQUEST_START, Grequest_start,
	(void *query, void *free_fn, void *cancel, const MPI_Aint *extra, int *request,
		int *ierror))
{
	struct request_functions *f = malloc(sizeof(*f));
	void *made = NULL;
	int gave = MPI_ERR_NO_MEM;

	if (f) {
		*f = (struct request_functions){query, free_fn, cancel, *extra};
		gave = PMPI_Grequest_start(
			request_queried, request_freed, request_cancelled, f, &made);
		if (gave)
			free(f);
		else
			*request = PMPI_Request_c2f(made);
	}
	GIVE(gave);
}

/* ---- data representations ---- */

typedef void convert_function(void *memory, const int *type, const int *count, void *file,
	const MPI_Offset *place, const MPI_Aint *extra, int *ierror);
typedef void extent_function(
	const int *type, MPI_Aint *extent, const MPI_Aint *extra, int *ierror);

/* The library keeps it for good. */
struct representation {
	convert_function *read, *write;
	extent_function *extent;
	MPI_Aint extra;
};

static int convert(convert_function *function, const struct representation *f, void *memory,
	void *type, int count, void *file, MPI_Offset place)
{
	int number = PMPI_Type_c2f(type), error = 0;

	function(memory, &number, &count, file, &place, &f->extra, &error);
	return error;
}

static int representation_read(
	void *memory, void *type, int count, void *file, MPI_Offset place, void *extra)
{
	const struct representation *f = extra;

	return convert(f->read, f, memory, type, count, file, place);
}

static int representation_written(
	void *memory, void *type, int count, void *file, MPI_Offset place, void *extra)
{
	const struct representation *f = extra;

	return convert(f->write, f, memory, type, count, file, place);
}

static int representation_extent(void *type, MPI_Aint *extent, void *extra)
{
	const struct representation *f = extra;
	int number = PMPI_Type_c2f(type), error = 0;

	f->extent(&number, extent, &f->extra, &error);
	return error;
}

/* MPI_CONVERSION_FN_NULL, which is never called: there is nothing to convert. */
static convert_function mpi_conversion_fn_null_f;
NAMED(mpi_conversion_fn_null, mpi_conversion_fn_null_f)
NAMED(mpi_conversion_fn_null_, mpi_conversion_fn_null_f)
NAMED(mpi_conversion_fn_null__, mpi_conversion_fn_null_f)
NAMED(MPI_CONVERSION_FN_NULL, mpi_conversion_fn_null_f)
static void mpi_conversion_fn_null_f(void *memory, const int *type, const int *count,
	void *file, const MPI_Offset *place, const MPI_Aint *extra, int *ierror)
{
}

typedef int convert_callback(void *, void *, int, void *, MPI_Offset, void *);
extern int PMPI_Register_datarep(const char *name, convert_callback *read,
	convert_callback *write, int (*extent)(void *, MPI_Aint *, void *), void *extra);

static int register_representation(const char *name, const struct representation *wanted)
{
	struct representation *f = malloc(sizeof(*f));
	int gave;

	if (!f)
		return MPI_ERR_NO_MEM;
	*f = *wanted;
	gave = PMPI_Register_datarep(name,
		f->read != mpi_conversion_fn_null_ ? representation_read : NULL,
		f->write != mpi_conversion_fn_null_ ? representation_written : NULL,
		representation_extent, f);
	if (gave)
		free(f);
	return gave;
}

FORTRAN_MPI(register_datarep, REGISTER_DATAREP, Register_datarep,
	(const char *name, void *read, void *write, void *extent, const MPI_Aint *extra,
		int *ierror, int length))
{
	WITH_MEMORY
	char *in_name = STRING_FOR_C(name, length);
	const struct representation wanted = {read, write, extent, *extra};
	int gave;

	NO_MEMORY_GIVES(ierror)
	gave = register_representation(in_name, &wanted);
	exchange_free(&memory);
	GIVE(gave);
}
