/*
 * libmpich.so.12 of the upper half, which is libmpi.so.12, too. Entry points and stubs/mpi/exchange.c exchange
 * handles; by hand is what the table cannot tell.
 */
#include <stdlib.h>

#include "shared/raw.h"
#include "shared/records.h"
#include "stubs/mpi/collective_gate.h"
#include "stubs/mpi/files.h"
#include "stubs/mpi/init.h"
#include "stubs/mpi/messages.h"
#include "stubs/mpi/windows.h"

#include "mpi.index.h"

typedef struct {
	int words[5];
} MPI_F08_status;

enum {
	MPI_COMM_WORLD = 0x44000000,
	MPI_COMM_SELF = 0x44000001,
};

static void library_opened(void);

STUB_LIBRARY(mpi, "libmpich.so.12", CALL_COUNT, MPI_ERR_OTHER, MPI_ERR_UNSUPPORTED_OPERATION,
	.opened = library_opened, .abi = MPI_ABI_MPICH);

/* ---- variables ---- */

/* The program's, and Fortran's: addresses that are compared, never looked at. */
#define EXPORT __attribute__((visibility("default")))

static int unweighted, weights_empty, all_handles;
extern EXPORT int *const MPI_UNWEIGHTED, *const MPI_WEIGHTS_EMPTY;
extern EXPORT void *const MPI_T_PVAR_ALL_HANDLES;
int *const MPI_UNWEIGHTED = &unweighted;
int *const MPI_WEIGHTS_EMPTY = &weights_empty;
void *const MPI_T_PVAR_ALL_HANDLES = &all_handles;

extern EXPORT int *MPIR_C_MPI_UNWEIGHTED, *MPIR_C_MPI_WEIGHTS_EMPTY;
int *MPIR_C_MPI_UNWEIGHTED = &unweighted;
int *MPIR_C_MPI_WEIGHTS_EMPTY = &weights_empty;

extern EXPORT MPI_Fint *MPI_F_STATUS_IGNORE, *MPI_F_STATUSES_IGNORE;
MPI_Fint *MPI_F_STATUS_IGNORE, *MPI_F_STATUSES_IGNORE;

extern EXPORT int MPIR_F08_MPI_BOTTOM, MPIR_F08_MPI_IN_PLACE;
int MPIR_F08_MPI_BOTTOM, MPIR_F08_MPI_IN_PLACE;
extern EXPORT MPI_F08_status MPIR_F08_MPI_STATUS_IGNORE_OBJ,
	MPIR_F08_MPI_STATUSES_IGNORE_OBJ[1];
MPI_F08_status MPIR_F08_MPI_STATUS_IGNORE_OBJ, MPIR_F08_MPI_STATUSES_IGNORE_OBJ[1];
extern EXPORT MPI_F08_status *MPI_F08_STATUS_IGNORE, *MPI_F08_STATUSES_IGNORE;
MPI_F08_status *MPI_F08_STATUS_IGNORE = &MPIR_F08_MPI_STATUS_IGNORE_OBJ;
MPI_F08_status *MPI_F08_STATUSES_IGNORE = MPIR_F08_MPI_STATUSES_IGNORE_OBJ;

/* What the variable number @index of the real library holds: it knows its own only. */
static void *lower_variable(unsigned index)
{
	void *target = mpi_targets[index];

	return target == (void *)mpi_missing ? NULL : *(void **)target;
}

static void *lower_weights(const void *given)
{
	if (given == MPI_UNWEIGHTED)
		return lower_variable(INDEX_MPI_UNWEIGHTED);
	if (given == MPI_WEIGHTS_EMPTY)
		return lower_variable(INDEX_MPI_WEIGHTS_EMPTY);
	return (void *)given;
}

static void *lower_variables(void *given)
{
	return given == MPI_T_PVAR_ALL_HANDLES ? lower_variable(INDEX_MPI_T_PVAR_ALL_HANDLES)
					       : given;
}

/* ---- what is saved ---- */

extern STUB_HIDDEN uint8_t mpi_called[];

extern STUB_HIDDEN struct mpi_count mpi_counts[];

STUB_HIDDEN struct mpi_state mpi_state = {.names = mpi_names,
	.called = mpi_called,
	.calls = CALL_COUNT,
	.counts = mpi_counts,
	.counts_used = 2,
	.messages = &mpi_messages,
	.reserve = library_reserve};

static void library_opened(void)
{
	objects_reset();
	files_reset();
	windows_reset();
	mpi_state.several = launcher_may_have_several();
	mpi_state.lower_is_openmpi = mpi_library.openmpi;
	RECORDS->mpi = &mpi_state;
}

/* ---- by hand ---- */

extern STUB_HIDDEN int real_MPI_Comm_rank(MPI_Comm comm, int *rank),
	real_MPI_Comm_size(MPI_Comm comm, int *size);

BY_HAND(MPI_T_init_thread, (int required, int *provided));
int body_MPI_T_init_thread(int required, int *provided)
{
	library_comes_up();
	return real_MPI_T_init_thread(required, provided);
}

BY_HAND(MPI_Dist_graph_create,
	(MPI_Comm comm, int n, const int *sources, const int *degrees, const int *destinations,
		const int *given, MPI_Info info, int reorder, MPI_Comm *graph));
int body_MPI_Dist_graph_create(MPI_Comm comm, int n, const int *sources, const int *degrees,
	const int *destinations, const int *given, MPI_Info info, int reorder, MPI_Comm *graph)
{
	const uint64_t words[16] = {comm, n, (uint64_t)sources, (uint64_t)degrees,
		(uint64_t)destinations, (uint64_t)lower_weights(given), info, reorder,
		(uint64_t)graph};

	return mpi_perform(INDEX_MPI_Dist_graph_create, words);
}

BY_HAND(MPI_Dist_graph_create_adjacent,
	(MPI_Comm comm, int in, const int *sources, const int *in_weights, int out,
		const int *destinations, const int *out_weights, MPI_Info info, int reorder,
		MPI_Comm *graph));
int body_MPI_Dist_graph_create_adjacent(MPI_Comm comm, int in, const int *sources,
	const int *in_weights, int out, const int *destinations, const int *out_weights,
	MPI_Info info, int reorder, MPI_Comm *graph)
{
	const uint64_t words[16] = {comm, in, (uint64_t)sources,
		(uint64_t)lower_weights(in_weights), out, (uint64_t)destinations,
		(uint64_t)lower_weights(out_weights), info, reorder, (uint64_t)graph};

	return mpi_perform(INDEX_MPI_Dist_graph_create_adjacent, words);
}

BY_HAND(MPI_Dist_graph_neighbors, (MPI_Comm comm, int in, int *sources, int *in_weights,
					  int out, int *destinations, int *out_weights));
int body_MPI_Dist_graph_neighbors(MPI_Comm comm, int in, int *sources, int *in_weights, int out,
	int *destinations, int *out_weights)
{
	return real_MPI_Dist_graph_neighbors(comm, in, sources, lower_weights(in_weights), out,
		destinations, lower_weights(out_weights));
}

BY_HAND(MPI_T_pvar_start, (void *session, void *handle));
int body_MPI_T_pvar_start(void *session, void *handle)
{
	return real_MPI_T_pvar_start(session, lower_variables(handle));
}

BY_HAND(MPI_T_pvar_stop, (void *session, void *handle));
int body_MPI_T_pvar_stop(void *session, void *handle)
{
	return real_MPI_T_pvar_stop(session, lower_variables(handle));
}

BY_HAND(MPI_T_pvar_reset, (void *session, void *handle));
int body_MPI_T_pvar_reset(void *session, void *handle)
{
	return real_MPI_T_pvar_reset(session, lower_variables(handle));
}

/* ---- without a crossing: programs ask it again and again ---- */

/* 1: a communicator of which the stub knows it. Others, and wrong arguments, are the library's to answer. */
static int is_known(MPI_Comm comm, const int *answer)
{
	return (comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF) && answer &&
	       mpi_state.initialised && !mpi_state.finalized;
}

OPEN(MPI_Comm_rank, (MPI_Comm comm, int *rank))
{
	if (!is_known(comm, rank))
		return real_MPI_Comm_rank(comm, rank);
	*rank = comm == MPI_COMM_WORLD ? mpi_state.rank : 0;
	return 0;
}

OPEN(MPI_Comm_size, (MPI_Comm comm, int *size))
{
	if (!is_known(comm, size))
		return real_MPI_Comm_size(comm, size);
	*size = comm == MPI_COMM_WORLD ? mpi_state.size : 1;
	return 0;
}
