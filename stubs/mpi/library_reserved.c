/*
 * library_reserved.c - while the lower half's agent is in the library, threads of the program wait in front of it.
 *
 * The agent carries out orders when all threads are stopped outside of the lower half. But it may be at work still when
 * they run again: an order takes too long (MPI_Win_flush_all waits for other ranks), or the supervisor has been killed.
 * A program that has not asked for MPI_THREAD_MULTIPLE must not call the library then. So the agent puts the address of
 * a piece of code that waits (mpi_record_entry.S) in the place of each function's, which is read behind the crossing
 * only: a thread that is stopped has not read it yet, or has come back. Steps of calls about messages read records of
 * requests before they call the library, and the agent changes these: so a step waits before it begins.
 */
#include "shared/call_info.h"
#include "stubs/mpi/handle_table.h"

#include "mpi.index.h"

extern STUB_HIDDEN const struct call_info mpi_info[];
extern STUB_HIDDEN const char mpi_waiting[], mpi_step_now[], mpi_step_waiting[];
extern STUB_HIDDEN const void *mpi_step_target;

_Static_assert(CALL_COUNT <= MPI_WAITING, "too few pieces of code that wait");

static void *reserved[CALL_COUNT];

/* A program that ends itself is not kept from it; and what time it is the library is not asked (lower/mpi/wtime.c). */
static int is_left(unsigned i)
{
	return mpi_info[i].way == API_VARIABLE || i == INDEX_MPI_Abort ||
	       i == INDEX_MPI_Wtime || i == INDEX_MPI_Wtick;
}

/* On the agent's thread: nothing thread-local may be touched. */
STUB_HIDDEN void library_reserve(int begin)
{
	__atomic_store_n(
		&mpi_step_target, begin ? mpi_step_waiting : mpi_step_now, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < CALL_COUNT; i++) {
		void *waiting = (void *)(mpi_waiting + (unsigned long)i * MPI_WAITING_SIZE);

		if (is_left(i))
			continue;
		if (begin)
			reserved[i] = mpi_targets[i];
		__atomic_store_n(
			&mpi_targets[i], begin ? waiting : reserved[i], __ATOMIC_RELEASE);
	}
}
