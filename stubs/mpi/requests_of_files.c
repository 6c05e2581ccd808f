/*
 * requests_of_files.c - requests of nonblocking calls about files. They are given to the library one by one, and held
 * when they are complete until the program asks. MPICH 4.0.2 crashes in MPI_Testall when one of several (of POSIX's
 * asynchronous I/O) is complete and another is not, and its MPI_Request_get_status never sees that one is complete.
 * Nonblocking collective calls on one file must make progress in the same order in all ranks.
 */
#include "shared/call_info.h"
#include "stubs/mpi/files.h"
#include "stubs/mpi/messages_buffered.h"
#include "stubs/mpi/partitioned.h"

#include "mpi.index.h"

extern STUB_HIDDEN const struct call_info mpi_info[];

STUB_HIDDEN int request_is_of_file(const struct mpi_request *r)
{
	return r->kind == MPI_NONBLOCKING_OTHER && mpi_info[r->call].class == API_FILE;
}

STUB_HIDDEN void request_is_of_all(struct mpi_request *r, struct mpi_file *f)
{
	r->counts = f->count;
	r->number = f->number;
	/* Its record may be this one by now. */
	r->elder = f->latest && f->latest->posted == f->latest_posted ? f->latest : NULL;
	r->elder_posted = f->latest_posted;
	f->latest = r;
	f->latest_posted = r->posted;
}

static void look_at_request(struct mpi_request *r)
{
	int32_t real = r->real, status[MPI_STATUS_INTS] = {0};
	int by_program = mpi_is_virtual(mpi_messages.world_handler), flag = 0, error;
	struct mpi_handlers h;

	/* It is told when the program asks for the request. */
	if (by_program)
		handlers_silence(&h, r->comm);
	error = LOWER_CALL(MPI_Test, (int32_t *, int *, int32_t *))(&real, &flag, status);
	if (by_program)
		handlers_restore(&h, r->comm);
	if (!flag && real == r->real)
		return;
	r->real = real;
	r->error = error;
	for (int i = 0; i < MPI_STATUS_INTS; i++)
		r->status[i] = status[i];
	r->held = 1;
}

STUB_HIDDEN int request_is_withheld(struct mpi_request *r)
{
	static uint32_t looking;
	struct mpi_request *first = r;

	if (r->active && !r->held && request_is_partitioned(r))
		return partitioned_is_withheld(r);
	if (r->active && !r->held && r->kind == MPI_BUFFER_FLUSH)
		return flush_is_withheld(r);
	if (!r->active || r->held || !request_is_of_file(r))
		return 0;
	/* Another thread may look at the same one, which the library frees when it is complete. */
	if (__atomic_exchange_n(&looking, 1, __ATOMIC_ACQUIRE))
		return !r->held;
	while (mpi_request_elder(first))
		first = mpi_request_elder(first);
	if (first->active && !first->held)
		look_at_request(first);
	__atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
	return !r->held;
}
