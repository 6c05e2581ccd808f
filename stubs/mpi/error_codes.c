/*
 * Classes, codes and strings of errors that the program adds. The library numbers them in the order in which they
 * are added: so the calls are kept, and made again at a restart.
 */
#include <string.h>

#include "shared/raw.h"
#include "stubs/crossing/crossing.h"
#include "stubs/mpi/handle_table.h"

#include "mpi.index.h"

/* Where the next one is put: there may be a million. */
static struct mpi_error_call **end = &mpi_state.error_calls;

static void keep_call(enum mpi_error_call_kind kind, int of, int value, const char *text)
{
	struct mpi_error_call *call = records_alloc(sizeof(*call) + strlen(text) + 1);

	/* A checkpoint says so. */
	if (!call) {
		mpi_state.error_calls_lost = 1;
		return;
	}
	call->next = NULL;
	call->kind = kind;
	call->of = of;
	call->value = value;
	raw_copy(call->text, text, strlen(text) + 1);
	raw_lock(&mpi_state.lock);
	*end = call;
	end = &call->next;
	raw_unlock(&mpi_state.lock);
}

BY_HAND(MPI_Add_error_class, (int *class));
int body_MPI_Add_error_class(int *class)
{
	int r = real_MPI_Add_error_class(class);

	if (!r)
		keep_call(MPI_ERROR_CLASS, 0, *class, "");
	return r;
}

BY_HAND(MPI_Add_error_code, (int class, int *code));
int body_MPI_Add_error_code(int class, int *code)
{
	int r = real_MPI_Add_error_code(class, code);

	if (!r)
		keep_call(MPI_ERROR_CODE, class, *code, "");
	return r;
}

BY_HAND(MPI_Add_error_string, (int code, const char *text));
int body_MPI_Add_error_string(int code, const char *text)
{
	int r = real_MPI_Add_error_string(code, text);

	if (!r)
		keep_call(MPI_ERROR_STRING, code, 0, text);
	return r;
}

BY_HAND(MPI_Remove_error_class, (int class));
int body_MPI_Remove_error_class(int class)
{
	int r = real_MPI_Remove_error_class(class);

	if (!r)
		keep_call(MPI_ERROR_CLASS_REMOVED, class, 0, "");
	return r;
}

BY_HAND(MPI_Remove_error_code, (int code));
int body_MPI_Remove_error_code(int code)
{
	int r = real_MPI_Remove_error_code(code);

	if (!r)
		keep_call(MPI_ERROR_CODE_REMOVED, code, 0, "");
	return r;
}

BY_HAND(MPI_Remove_error_string, (int code));
int body_MPI_Remove_error_string(int code)
{
	int r = real_MPI_Remove_error_string(code);

	if (!r)
		keep_call(MPI_ERROR_STRING_REMOVED, code, 0, "");
	return r;
}

/* What MPICH called these before MPI 4.1 had them. */
BY_HAND(MPIX_Delete_error_class, (int class));
int body_MPIX_Delete_error_class(int class)
{
	int r = real_MPIX_Delete_error_class(class);

	if (!r)
		keep_call(MPI_ERROR_CLASS_REMOVED, class, 0, "");
	return r;
}

BY_HAND(MPIX_Delete_error_code, (int code));
int body_MPIX_Delete_error_code(int code)
{
	int r = real_MPIX_Delete_error_code(code);

	if (!r)
		keep_call(MPI_ERROR_CODE_REMOVED, code, 0, "");
	return r;
}

BY_HAND(MPIX_Delete_error_string, (int code));
int body_MPIX_Delete_error_string(int code)
{
	int r = real_MPIX_Delete_error_string(code);

	if (!r)
		keep_call(MPI_ERROR_STRING_REMOVED, code, 0, "");
	return r;
}
