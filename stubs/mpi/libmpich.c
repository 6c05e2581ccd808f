/*
 * libmpich.so.12 of the upper half, which is libmpi.so.12, too. Entry points and stubs/mpi/exchange.c exchange
 * handles; by hand is what the table cannot tell.
 */
#include <stdlib.h>

#include "shared/raw.h"
#include "shared/records.h"
#include "stubs/mpi/collective_gate.h"
#include "stubs/mpi/files.h"
#include "stubs/mpi/messages_buffered.h"
#include "stubs/mpi/requests.h"

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

/* Before the library says how many ranks there are: what the launcher says. */
static int may_be_several(void)
{
	static const char *const variables[] = {
		"PMI_RANK", "PMI_FD", "PMI_PORT", "PMIX_RANK",
		"SLURM_STEP_NUM_TASKS", /* not in a batch script itself */
	};
	const char *size = getenv("PMI_SIZE");

	if (!size)
		size = getenv("OMPI_COMM_WORLD_SIZE");
	if (size)
		return size[0] != '1' || size[1];
	for (unsigned i = 0; i < sizeof(variables) / sizeof(*variables); i++)
		if (getenv(variables[i]))
			return 1;
	return 0;
}

static void library_opened(void)
{
	objects_reset();
	files_reset();
	mpi_state.several = may_be_several();
	mpi_state.lower_is_openmpi = mpi_library.openmpi;
	RECORDS->mpi = &mpi_state;
}

/* ---- by hand ---- */

extern STUB_HIDDEN int real_MPI_Comm_rank(MPI_Comm comm, int *rank),
	real_MPI_Comm_size(MPI_Comm comm, int *size),
	real_MPI_Comm_get_attr(MPI_Comm comm, MPI_Keyval key, void **value, int *flag);

/* The program may have set what the library is to be told by its environment. From now on a
 * child of fork has no MPI. */
BY_HAND(MPI_Query_thread, (int *provided));
BY_HAND(MPI_Get_version, (int *version, int *subversion));

static void comes_up(void)
{
	crossing_used();
	crossing_environment();
	crossing_connection();
	mpi_state.several = may_be_several();
}

/* What the program may be told, and must stay so when the real library is another one. MPICH 4.0, which may be, has
 * fewer tags than Open MPI. */
static void remember_told(struct mpi_state *s)
{
	enum { TAG_UB = 0x64400001, MOST_TAGS = 0xfffffff };
	int *limit = NULL, flag = 0;

	if (!real_MPI_Comm_get_attr(MPI_COMM_WORLD, TAG_UB, (void **)&limit, &flag) && flag)
		s->tag_ub = s->lower_is_openmpi && *limit > MOST_TAGS ? MOST_TAGS : *limit;
	if (real_MPI_Get_version(&s->version, &s->subversion))
		s->version = 0;
}

/* What a restart has to do again, when the library has come up. */
static int came_up(int result)
{
	struct mpi_state *s = &mpi_state;

	if (result)
		return result;
	s->several = real_MPI_Query_thread(&s->provided) ||
		     real_MPI_Comm_rank(MPI_COMM_WORLD, &s->rank) ||
		     real_MPI_Comm_size(MPI_COMM_WORLD, &s->size) || s->size != 1;
	s->counts[0].members = s->counts[0].size = s->size;
	s->world.count = &s->counts[0];
	s->self.count = &s->counts[1];
	if (gate_count_messages(MPI_COMM_WORLD, &s->counts[0]) ||
		gate_count_messages(MPI_COMM_SELF, &s->counts[1]))
		s->uncounted = MPI_NO_MEMORY;
	s->main = raw_read_fs();
	remember_told(s);
	s->initialised = 1;
	return 0;
}

BY_HAND(MPI_Init, (int *argc, char ***argv));
int body_MPI_Init(int *argc, char ***argv)
{
	comes_up();
	return came_up(real_MPI_Init(argc, argv));
}

BY_HAND(MPI_Init_thread, (int *argc, char ***argv, int required, int *provided));
int body_MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	comes_up();
	return came_up(real_MPI_Init_thread(argc, argv, required, provided));
}

BY_HAND(MPI_Finalize, (void));
int body_MPI_Finalize(void)
{
	int r;

	buffered_await(INDEX_MPI_Finalize);
	r = real_MPI_Finalize();

	if (!r)
		mpi_state.finalized = 1;
	return r;
}

/* The library of a restart may have a higher level, or be of another version. */
int body_MPI_Query_thread(int *provided)
{
	int r = real_MPI_Query_thread(provided);

	if (!r && mpi_state.initialised)
		*provided = mpi_state.provided;
	return r;
}

int body_MPI_Get_version(int *version, int *subversion)
{
	int r = real_MPI_Get_version(version, subversion);

	if (!r && mpi_state.version) {
		*version = mpi_state.version;
		*subversion = mpi_state.subversion;
	}
	return r;
}

/* The library of a restart was initialised by a thread of the lower half. */
BY_HAND(MPI_Is_thread_main, (int *flag));
int body_MPI_Is_thread_main(int *flag)
{
	int r = real_MPI_Is_thread_main(flag);

	if (!r)
		*flag = raw_read_fs() == mpi_state.main;
	return r;
}

BY_HAND(MPI_Session_init, (MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session));
int body_MPI_Session_init(MPI_Info info, MPI_Errhandler errhandler, MPI_Session *session)
{
	comes_up();
	return real_MPI_Session_init(info, errhandler, session);
}

BY_HAND(MPI_T_init_thread, (int required, int *provided));
int body_MPI_T_init_thread(int required, int *provided)
{
	comes_up();
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
