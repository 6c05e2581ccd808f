/*
 * requests_generalized.c - requests that the program completes itself. A restart makes them again with the program's
 * functions, and completes requests that the program had completed (lower/mpi/requests_replay.c).
 */
#include "stubs/crossing/crossing.h"
#include "stubs/mpi/requests.h"

#include "mpi.index.h"

/* @words: as the library is given them, the program's pointer to the request last. */
static int generalized_begun(
	unsigned index, int result, int real, const uint64_t *words, int count)
{
	struct mpi_request *r =
		result ? NULL : request_with_origin(index, real, MPI_GENERALIZED);

	if (!r)
		return result ? result : MPI_ERR_INTERN;
	for (int i = 0; i < count; i++)
		r->origin->words[i] = words[i];
	r->origin->kinds[count - 1] = MPI_WORD_RESULT;
	*(int *)words[count - 1] = r->handle;
	return 0;
}

BY_HAND(MPI_Grequest_start, (void *query, void *free, void *cancel, void *extra, int *request));
int body_MPI_Grequest_start(void *query, void *free, void *cancel, void *extra, int *request)
{
	const uint64_t words[] = {(uint64_t)crossing_callback_pointer(query),
		(uint64_t)crossing_callback_pointer(free),
		(uint64_t)crossing_callback_pointer(cancel), (uint64_t)extra,
		(uint64_t)request};
	int real = MPI_REQUEST_NULL;
	int r = real_MPI_Grequest_start(
		(void *)words[0], (void *)words[1], (void *)words[2], extra, &real);

	return generalized_begun(INDEX_MPI_Grequest_start, r, real, words, 5);
}

BY_HAND(MPIX_Grequest_start, (void *query, void *free, void *cancel, void *poll, void *wait,
				     void *extra, int *request));
int body_MPIX_Grequest_start(void *query, void *free, void *cancel, void *poll, void *wait,
	void *extra, int *request)
{
	const uint64_t words[] = {(uint64_t)crossing_callback_pointer(query),
		(uint64_t)crossing_callback_pointer(free),
		(uint64_t)crossing_callback_pointer(cancel),
		(uint64_t)crossing_callback_pointer(poll),
		(uint64_t)crossing_callback_pointer(wait), (uint64_t)extra, (uint64_t)request};
	int real = MPI_REQUEST_NULL;
	int r = real_MPIX_Grequest_start((void *)words[0], (void *)words[1], (void *)words[2],
		(void *)words[3], (void *)words[4], extra, &real);

	return generalized_begun(INDEX_MPIX_Grequest_start, r, real, words, 7);
}

extern STUB_HIDDEN int real_MPI_Request_free(int32_t *request);

BY_HAND(MPI_Grequest_complete, (int request));
int body_MPI_Grequest_complete(int request)
{
	struct mpi_request *r = request_of(request);
	int ours = r && r->kind == MPI_GENERALIZED, orphan = ours && r->orphan, error;
	int32_t real = r ? r->real : request;

	/* Afterwards another thread may have heard of it, and the record be another request's. */
	if (ours)
		r->completed = 1;
	/* The library forgot it at a restart: it had called the program's functions when it was freed. */
	error = orphan && real == MPI_REQUEST_NULL ? 0 : real_MPI_Grequest_complete(real);
	if (orphan && r->orphan == MPI_ORPHAN_AGAIN && !error)
		error = real_MPI_Request_free(&real);
	if (ours && error)
		r->completed = 0;
	else if (orphan)
		request_give_back(r);
	return error;
}

BY_HAND(MPII_Grequest_set_lang_f77, (int request));
int body_MPII_Grequest_set_lang_f77(int request)
{
	struct mpi_request *r = request_of(request);

	if (r)
		r->fortran = 1;
	return real_MPII_Grequest_set_lang_f77(r ? r->real : request);
}
