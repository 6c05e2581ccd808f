/*
 * init.c - the library comes up and ends: by MPI_Init and MPI_Finalize, or by sessions (MPI 4.0).
 *
 * Messages are counted, and objects made again, as of ranks of MPI_COMM_WORLD. So the first session of a program that has not called MPI_Init
 * initialises the library below as MPI_Init does, with the program's own session besides: it lasts until the program has neither, or exits, and
 * the program is not told of it.
 */
#include <stdlib.h>

#include "shared/raw.h"
#include "shared/records.h"
#include "stubs/mpi/collective_gate.h"
#include "stubs/mpi/init.h"
#include "stubs/mpi/messages_buffered.h"
#include "stubs/mpi/partitioned.h"

#include "mpi.index.h"

extern STUB_HIDDEN int real_MPI_Comm_rank(MPI_Comm comm, int *rank),
	real_MPI_Comm_size(MPI_Comm comm, int *size),
	real_MPI_Comm_get_attr(MPI_Comm comm, MPI_Keyval key, void **value, int *flag),
	real_MPI_Init(int *argc, char ***argv),
	real_MPI_Init_thread(int *argc, char ***argv, int required, int *provided),
	real_MPI_Finalize(void);

STUB_HIDDEN int launcher_may_have_several(void)
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

BY_HAND(MPI_Query_thread, (int *provided));
BY_HAND(MPI_Get_version, (int *version, int *subversion));

static int has_come_up;

STUB_HIDDEN void library_comes_up(void)
{
	has_come_up = 1;
	crossing_used();
	crossing_environment();
	crossing_connection();
	mpi_state.several = launcher_may_have_several();
	/* Also if the launcher seems to have one only: its variables may be another one's. If it cannot be said now, it will be
	 * missing when all are looked for. */
	(void)crossing_ask_supervisor("mpi begun\n");
}

/* What the program may be told, and must stay so when the real library is another one. MPICH 4.0, which may be, has
 * fewer tags than Open MPI. */
static void remember_told(struct mpi_state *s)
{
	enum { TAG_UB = 0x64400001, MOST_TAGS = 0xfffffff };
	int *limit = NULL, flag = 0;

	if (!real_MPI_Comm_get_attr(COMM_WORLD, TAG_UB, (void **)&limit, &flag) && flag)
		s->tag_ub = s->lower_is_openmpi && *limit > MOST_TAGS ? MOST_TAGS : *limit;
	if (real_MPI_Get_version(&s->version, &s->subversion))
		s->version = 0;
}

/* No rank leaves the library's initialisation before all have entered it: those that have a stub have said so by now. */
static uint32_t find_outsiders(void)
{
	int r = crossing_ask_supervisor("mpi all\n");

	return r < 0 ? MPI_OUTSIDERS_UNKNOWN : r ? MPI_OUTSIDERS : MPI_NO_OUTSIDERS;
}

/* What a restart has to do again, when the library has come up. */
static int came_up(int result)
{
	struct mpi_state *s = &mpi_state;

	if (result)
		return result;
	s->several = real_MPI_Query_thread(&s->provided) ||
		     real_MPI_Comm_rank(COMM_WORLD, &s->rank) ||
		     real_MPI_Comm_size(COMM_WORLD, &s->size) || s->size != 1;
	s->counts[0].members = s->counts[0].size = s->size;
	s->world.count = &s->counts[0];
	s->self.count = &s->counts[1];
	if (gate_count_messages(COMM_WORLD, &s->counts[0]) ||
		gate_count_messages(COMM_SELF, &s->counts[1]))
		s->uncounted = MPI_NO_MEMORY;
	s->main = raw_read_fs();
	remember_told(s);
	s->outsiders = s->size != 1 ? find_outsiders() : MPI_NO_OUTSIDERS;
	if (!s->outsiders)
		partitions_come_up();
	s->initialised = 1;
	return 0;
}

/* ---- MPI_Init ---- */

struct init_call {
	int *argc;
	char ***argv;
	int required, *provided; /* NULL: of MPI_Init */
};

static int init(void *argument)
{
	const struct init_call *c = argument;

	library_comes_up();
	return came_up(
		c->provided ? real_MPI_Init_thread(c->argc, c->argv, c->required, c->provided)
			    : real_MPI_Init(c->argc, c->argv));
}

static int init_counted(unsigned index, struct init_call *c)
{
	struct mpi_count *count = gate_enter_all(index);
	int r = mpi_guarded(c, init);

	gate_leave(count);
	return r;
}

/* Not, if the library is there already. */
static int init_world(unsigned index, struct init_call *c)
{
	struct mpi_state *s = &mpi_state;

	if (!s->by_session || s->finalized)
		return init_counted(index, c);
	s->by_session = 0;
	s->main = raw_read_fs();
	if (c->provided)
		*c->provided = s->provided;
	return 0;
}

OPEN(MPI_Init, (int *argc, char ***argv))
{
	struct init_call c = {.argc = argc, .argv = argv};

	return init_world(INDEX_MPI_Init, &c);
}

OPEN(MPI_Init_thread, (int *argc, char ***argv, int required, int *provided))
{
	struct init_call c = {argc, argv, required, provided};

	return init_world(INDEX_MPI_Init_thread, &c);
}

/* ---- MPI_Finalize ---- */

static int finalize(void *unused)
{
	int r;

	(void)unused;
	partitions_end();
	r = real_MPI_Finalize();
	if (!r)
		mpi_state.finalized = 1;
	return r;
}

/* What is in buffers is sent before: there a rank can be saved that others receive from. */
static int end_library(unsigned index)
{
	struct mpi_count *count;
	int r;

	buffered_await(index, NULL);
	count = gate_enter_all(index);
	r = mpi_guarded(NULL, finalize);
	gate_leave(count);
	return r;
}

OPEN(MPI_Finalize, (void))
{
	if (!mpi_state.sessions || mpi_state.finalized)
		return end_library(INDEX_MPI_Finalize);
	buffered_await(INDEX_MPI_Finalize, NULL);
	mpi_state.world_ended = 1;
	return 0;
}

/* ---- what the program is told ---- */

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

BY_HAND(MPI_Initialized, (int *flag));
int body_MPI_Initialized(int *flag)
{
	int r = real_MPI_Initialized(flag);

	if (!r && mpi_state.by_session)
		*flag = 0;
	return r;
}

BY_HAND(MPI_Finalized, (int *flag));
int body_MPI_Finalized(int *flag)
{
	int r = real_MPI_Finalized(flag);

	if (!r && mpi_state.by_session)
		*flag = 0;
	else if (!r && mpi_state.world_ended)
		*flag = 1;
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

/* ---- sessions ---- */

struct session_call {
	MPI_Info info;
	MPI_Errhandler handler;
	MPI_Session *session;
};

/* Where destructors of the library have their place: behind all that the program has registered with atexit(3), and its own
 * destructors, which may call MPI_Finalize. A child of fork has no records. */
static void __attribute__((destructor)) end_at_exit(void)
{
	struct mpi_state *s = &mpi_state;

	if (!has_come_up || RECORDS->mpi != s)
		return;
	if (s->by_session && !s->sessions && !s->finalized)
		(void)end_library(INDEX_MPI_Session_finalize);
	crossing_exit();
}

/* At the highest level, whatever the hint of this session: the next one may ask for more. */
static int init_for_session(void)
{
	int provided;
	struct init_call c = {.required = MPI_THREAD_MULTIPLE, .provided = &provided};
	int r = init_counted(INDEX_MPI_Session_init, &c);

	if (r)
		return r;
	mpi_state.by_session = 1;
	return 0;
}

static int new_session(void *argument)
{
	const struct session_call *c = argument;
	const uint64_t words[16] = {c->info, c->handler, (uint64_t)c->session};
	int r = mpi_perform(INDEX_MPI_Session_init, words);

	if (r)
		return r;
	__atomic_add_fetch(&mpi_state.sessions, 1, __ATOMIC_SEQ_CST);
	/* After MPI_Finalize there is no MPI_COMM_WORLD, by which all is saved. */
	if (mpi_state.finalized)
		mpi_state.called[INDEX_MPI_Session_init] = MPI_CALLED_UNSAVED;
	return 0;
}

OPEN(MPI_Session_init, (MPI_Info info, MPI_Errhandler handler, MPI_Session *session))
{
	static uint32_t lock;
	struct session_call c = {info, handler, session};
	int r = 0;

	/* Open MPI 4.1 has none. */
	if (mpi_state.lower_is_openmpi)
		return MPI_ERR_UNSUPPORTED_OPERATION;
	raw_lock(&lock);
	if (!mpi_state.initialised)
		r = init_for_session();
	raw_unlock(&lock);
	return r ? r : mpi_guarded(&c, new_session);
}

static int end_session(void *argument)
{
	const uint64_t words[16] = {(uint64_t)argument};

	return mpi_perform(INDEX_MPI_Session_finalize, words);
}

OPEN(MPI_Session_finalize, (MPI_Session * session))
{
	struct mpi_object *o = object_of(*session);
	int r;

	/* What was sent on its communicators, or in any buffer if it is the last one. */
	if (mpi_state.sessions == 1)
		buffered_await(INDEX_MPI_Session_finalize, NULL);
	else if (o && o->buffer)
		buffered_await(INDEX_MPI_Session_finalize, o->buffer);
	r = mpi_guarded(session, end_session);
	if (r || __atomic_sub_fetch(&mpi_state.sessions, 1, __ATOMIC_SEQ_CST) ||
		!mpi_state.world_ended || mpi_state.finalized)
		return r;
	return end_library(INDEX_MPI_Session_finalize);
}
