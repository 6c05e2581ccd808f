/*
 * collective_gate.c - collective calls are counted for each communicator; while the ranks of a job come to rest
 * together, a thread waits here in front of a call that is not to be entered yet (doc/decisions/mpi-quiescing.md).
 *
 * Entry points come here before anything else, and nothing here is guarded: a thread may be stopped for a
 * checkpoint anywhere, also where it waits, and continues from there after a restart.
 */
#include "stubs/mpi/collective_gate.h"

#include <time.h>

#include "shared/call_info.h"
#include "shared/raw.h"
#include "stubs/crossing/crossing.h"
#include "stubs/mpi/files.h"
#include "stubs/mpi/requests.h"

#include "mpi.index.h"

extern STUB_HIDDEN const struct call_info mpi_info[];
extern STUB_HIDDEN int real_MPI_Bcast(
	void *data, int count, MPI_Datatype type, int root, MPI_Comm comm),
	real_MPI_Comm_rank(MPI_Comm comm, int *rank),
	real_MPI_Comm_test_inter(MPI_Comm comm, int *inter),
	real_MPI_Comm_size(MPI_Comm comm, int *size),
	real_MPI_Comm_remote_size(MPI_Comm comm, int *size),
	real_MPI_Comm_group(MPI_Comm comm, int *group),
	real_MPI_Comm_remote_group(MPI_Comm comm, int *group), real_MPI_Group_free(int *group),
	real_MPI_Group_translate_ranks(
		int group, int n, const int *ranks, int other, int *others),
	real_MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, void *status);

STUB_HIDDEN int mpi_counted_call(
	unsigned index, const uint64_t registers[6], const uint64_t *stack, void *code);
STUB_HIDDEN int mpi_call_code(void *code, const uint64_t words[16]);

STUB_HIDDEN struct mpi_count mpi_counts[MPI_COUNTS] = {
	{.number = MPI_NUMBER_WORLD}, {.number = MPI_NUMBER_SELF, .members = 1, .size = 1}};
#define FIRST_MADE 2 /* by the program */

/* ---- waiting ---- */

/* A supervisor reports more often than this; a thread that hears nothing for longer enters its call. */
#define SILENCE_NS 10000000000ull
#define NAP_NS     200000

static uint64_t clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* Other ranks may need it to get on with calls that this one has left. */
static void make_progress(void)
{
	int flag;

	if (mpi_state.initialised && !mpi_state.finalized)
		(void)real_MPI_Iprobe(0, MPI_UNUSED_TAG, COMM_WORLD, &flag, STATUS_IGNORE);
}

static uint32_t gate_now(void)
{
	return __atomic_load_n(&mpi_state.gate, __ATOMIC_SEQ_CST);
}

/* Whether the call that would be number @entered has to wait. */
static int is_beyond(const struct mpi_count *c, uint64_t entered)
{
	return gate_now() && entered > __atomic_load_n(&c->limit, __ATOMIC_SEQ_CST);
}

/* 0; or 1: there is nobody any more who would open the gate. */
static int await_limit(struct mpi_count *c)
{
	static const struct timespec nap = {.tv_nsec = NAP_NS};
	uint64_t heard = clock_now();
	uint32_t gate = gate_now();

	while (is_beyond(c, __atomic_load_n(&c->entered, __ATOMIC_SEQ_CST) + 1)) {
		make_progress();
		nanosleep(&nap, NULL);
		if (gate != gate_now()) {
			gate = gate_now();
			heard = clock_now();
		} else if (clock_now() - heard > SILENCE_NS) {
			return 1;
		}
	}
	return 0;
}

/* What has been entered is written before the limit is read; a supervisor writes limits, and reads then. */
static void enter_collective(struct mpi_count *c, unsigned index)
{
	int abandoned = 0;

	c->call = index;
	while (is_beyond(c, __atomic_add_fetch(&c->entered, 1, __ATOMIC_SEQ_CST)) &&
		!abandoned) {
		__atomic_sub_fetch(&c->entered, 1, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&c->parked, 1, __ATOMIC_SEQ_CST);
		abandoned = await_limit(c);
		__atomic_sub_fetch(&c->parked, 1, __ATOMIC_SEQ_CST);
	}
}

/* ---- counts ---- */

static struct mpi_count *new_count(
	uint64_t number, uint32_t members, uint32_t size, uint64_t entered)
{
	struct mpi_state *s = &mpi_state;
	struct mpi_count *c = NULL;

	raw_lock(&s->counts_lock);
	for (uint32_t i = FIRST_MADE; i < MPI_COUNTS && !c; i++)
		if (!mpi_counts[i].number)
			c = &mpi_counts[i];
	if (c) {
		*c = (struct mpi_count){.members = members,
			.size = size,
			.entered = entered,
			.left = entered,
			.peers = c->peers,
			.peer_room = c->peer_room};
		if (c - mpi_counts >= s->counts_used)
			s->counts_used = c - mpi_counts + 1;
		__atomic_store_n(&c->number, number, __ATOMIC_SEQ_CST);
	} else {
		s->uncounted = MPI_TOO_MANY;
	}
	raw_unlock(&s->counts_lock);
	return c;
}

static void drop_count(struct mpi_count *c)
{
	__atomic_store_n(&c->number, 0, __ATOMIC_SEQ_CST);
}

/* ---- messages of two ranks ---- */

#define TOGETHER 64

/* @peers: for @count members from number @first on. */
static int translate_some(
	int group, int world, struct mpi_peer *peers, uint32_t first, uint32_t count)
{
	int ranks[TOGETHER], there[TOGETHER];
	int r;

	for (uint32_t i = 0; i < count; i++)
		ranks[i] = first + i;
	r = real_MPI_Group_translate_ranks(group, count, ranks, world, there);
	for (uint32_t i = 0; i < count && !r; i++)
		peers[i].world = there[i];
	return r;
}

/* Their ranks in MPI_COMM_WORLD. */
static int translate_members(MPI_Comm comm, int inter, struct mpi_peer *peers, uint32_t size)
{
	int group, world, r = -1;

	if (comm == COMM_WORLD) {
		for (uint32_t i = 0; i < size; i++)
			peers[i].world = i;
		return 0;
	}
	if (inter ? real_MPI_Comm_remote_group(comm, &group)
		  : real_MPI_Comm_group(comm, &group))
		return -1;
	if (!real_MPI_Comm_group(COMM_WORLD, &world)) {
		r = 0;
		for (uint32_t i = 0; i < size && !r; i += TOGETHER)
			r = translate_some(group, world, peers + i, i,
				size - i < TOGETHER ? size - i : TOGETHER);
		real_MPI_Group_free(&world);
	}
	real_MPI_Group_free(&group);
	return r;
}

static int make_peers(struct mpi_count *c)
{
	if (c->peer_room < c->size) {
		uint32_t room = c->size < 8 ? 8 : c->size;

		c->peers = records_alloc(room * sizeof(*c->peers));
		c->peer_room = c->peers ? room : 0;
	}
	if (!c->peers)
		return -1;
	raw_zero(c->peers, c->size * sizeof(*c->peers));
	return 0;
}

STUB_HIDDEN int gate_count_messages(MPI_Comm comm, struct mpi_count *c)
{
	return make_peers(c) ? -1 : translate_members(comm, 0, c->peers, c->size);
}

/* ---- communicators that are made ---- */

static uint64_t own_number(void)
{
	return (uint64_t)(mpi_state.rank + 1) << 32 |
	       __atomic_add_fetch(&mpi_state.numbers_given, 1, __ATOMIC_RELAXED);
}

/* The first member tells all. */
static uint64_t agree_on_number(MPI_Comm comm)
{
	uint64_t number = 0;
	int rank = -1;

	real_MPI_Comm_rank(comm, &rank);
	if (!rank)
		number = own_number();
	return real_MPI_Bcast(&number, sizeof(number), BYTE, 0, comm) ? 0 : number;
}

/* Of two groups: the first member of that whose first member is the first one tells the other group, whose first
 * member tells it. */
static uint64_t agree_between(MPI_Comm comm)
{
	struct mpi_peer here = {.world = -1}, there = {.world = -1};
	int rank = -1, ours, root;
	uint64_t number = 0;

	real_MPI_Comm_rank(comm, &rank);
	if (translate_members(comm, 0, &here, 1) || translate_members(comm, 1, &there, 1))
		return 0;
	ours = here.world < there.world;
	if (ours && !rank)
		number = own_number();
	root = rank ? MPI_PROC_NULL : MPI_ROOT;
	if (real_MPI_Bcast(&number, sizeof(number), BYTE, ours ? root : 0, comm) ||
		real_MPI_Bcast(&number, sizeof(number), BYTE, ours ? 0 : root, comm))
		return 0;
	return number;
}

/* Whether all processes of a group are of MPI_COMM_WORLD: those of MPI_Comm_spawn are not, and may have no stub to
 * agree on a number with. All members decide alike. */
static int is_of_world(MPI_Comm comm, int inter, uint32_t size)
{
	struct mpi_peer some[TOGETHER];
	int group, world, found, of_world;

	if (inter ? real_MPI_Comm_remote_group(comm, &group)
		  : real_MPI_Comm_group(comm, &group))
		return 0;
	of_world = found = !real_MPI_Comm_group(COMM_WORLD, &world);
	for (uint32_t i = 0; i < size && of_world; i += TOGETHER) {
		uint32_t count = size - i < TOGETHER ? size - i : TOGETHER;

		of_world = !translate_some(group, world, some, i, count);
		for (uint32_t k = 0; k < count; k++)
			of_world &= some[k].world >= 0;
	}
	if (found)
		real_MPI_Group_free(&world);
	real_MPI_Group_free(&group);
	return of_world;
}

STUB_HIDDEN void gate_number(struct mpi_object *o)
{
	int inter = 0, members = 0, others = 0;
	uint64_t number;

	/* Others may not take part in what agrees on a number. */
	if (mpi_state.outsiders)
		return;
	/* Made of a session after MPI_Finalize, it has no MPI_COMM_WORLD to be told by. */
	if (!mpi_state.initialised || mpi_state.finalized) {
		mpi_state.uncounted = MPI_FOREIGN;
		return;
	}
	real_MPI_Comm_test_inter(o->handle, &inter);
	real_MPI_Comm_size(o->handle, &members);
	others = members;
	if (inter)
		real_MPI_Comm_remote_size(o->handle, &others);
	if (!is_of_world(o->handle, 0, members) ||
		(inter && !is_of_world(o->handle, 1, others))) {
		mpi_state.uncounted = MPI_FOREIGN;
		return;
	}
	number = inter ? agree_between(o->handle) : agree_on_number(o->handle);
	o->count = number ? new_count(number, inter ? members + others : members, others, 0)
			  : NULL;
	if (o->count && (make_peers(o->count) ||
				translate_members(o->handle, inter, o->count->peers, others)))
		mpi_state.uncounted = MPI_NO_MEMORY;
	else if (!o->count)
		mpi_state.uncounted = MPI_TOO_MANY;
}

/* ---- communicators of MPI_Comm_idup ---- */

/* Nothing can be asked of it yet, and nothing sent: whoever waits for its request must not wait for more. All
 * members make it by the same call on the first one, as they count them. */
static uint64_t number_of_copy(const struct mpi_count *of)
{
	uint64_t hash = of->number * 0x9e3779b97f4a7c15u ^ of->entered;

	if (of->members == 1)
		return own_number();
	hash *= 0xbf58476d1ce4e5b9u;
	hash ^= hash >> 31;
	return MPI_NUMBER_OF_COPY | (hash & (MPI_NUMBER_OF_COPY - 1));
}

static int copy_members(struct mpi_count *c, const struct mpi_count *of)
{
	if (!of->peers || make_peers(c))
		return -1;
	for (uint32_t i = 0; i < c->size; i++)
		c->peers[i].world = of->peers[i].world;
	return 0;
}

STUB_HIDDEN void gate_number_copy(struct mpi_object *o, const struct mpi_object *of)
{
	if (of && of->count)
		o->count = new_count(
			number_of_copy(of->count), of->count->members, of->count->size, 0);
	if (!o->count)
		mpi_state.uncounted = of && of->count ? MPI_TOO_MANY : MPI_FOREIGN;
	else if (copy_members(o->count, of->count))
		mpi_state.uncounted = MPI_NO_MEMORY;
}

STUB_HIDDEN int gate_number_partitions(struct mpi_object *o)
{
	o->count = new_count(MPI_NUMBER_PARTS, mpi_state.size, mpi_state.size, 0);
	return o->count ? gate_count_messages(COMM_WORLD, o->count) : -1;
}

/* ---- windows ---- */

STUB_HIDDEN int gate_is_of_world(MPI_Comm comm)
{
	int members = 0, inter = 0;

	return mpi_state.initialised && !mpi_state.outsiders &&
	       !real_MPI_Comm_test_inter(comm, &inter) && !inter &&
	       !real_MPI_Comm_size(comm, &members) && is_of_world(comm, 0, members);
}

STUB_HIDDEN uint64_t gate_new_number(void)
{
	return own_number();
}

STUB_HIDDEN void gate_number_window(struct mpi_object *o, uint64_t number, uint32_t members)
{
	o->count = new_count(number, members, 0, 0);
	if (!o->count)
		mpi_state.uncounted = MPI_TOO_MANY;
}

/* Of all windows, and of this rank only. */
static struct mpi_count *of_windows;

STUB_HIDDEN void gate_begin_windows(void)
{
	static uint32_t lock;
	struct mpi_count *c;

	raw_lock(&lock);
	if (!of_windows) {
		c = new_count(MPI_NUMBER_OF_SOME | own_number(), 0, 0, 0);
		if (c)
			c->beyond = 1;
		__atomic_store_n(&of_windows, c, __ATOMIC_RELEASE);
	}
	raw_unlock(&lock);
}

STUB_HIDDEN struct mpi_count *gate_enter_window(unsigned index)
{
	struct mpi_count *c = __atomic_load_n(&of_windows, __ATOMIC_ACQUIRE);

	if (c)
		enter_collective(c, index);
	return c;
}

/* ---- files ---- */

STUB_HIDDEN struct mpi_count *gate_number_file(MPI_Comm comm)
{
	struct mpi_count *c;
	uint64_t number;
	int members = 0;

	if (!gate_is_of_world(comm)) {
		mpi_state.uncounted = MPI_FOREIGN;
		return NULL;
	}
	number = agree_on_number(comm);
	real_MPI_Comm_size(comm, &members);
	c = number ? new_count(number | MPI_NUMBER_OF_FILE, members, 0, 0) : NULL;
	if (!c)
		mpi_state.uncounted = MPI_TOO_MANY;
	return c;
}

STUB_HIDDEN void gate_freed(const struct mpi_object *o)
{
	queue_drop(o->count);
}

/* ---- calls ---- */

/* NULL: none is kept of it, or it is no communicator or window. */
static struct mpi_count *count_of(int32_t handle)
{
	struct mpi_object *o = object_of(handle);

	if (handle == COMM_WORLD)
		return &mpi_counts[0];
	return o ? o->count : NULL;
}

static struct mpi_count *count_of_file(const void *handle)
{
	const struct mpi_file *f = file_of(handle);

	return f ? f->count : NULL;
}

/* The parameter that is the communicator, window or file; NULL: there is none. */
static const struct call_param *find_subject(const struct call_info *info)
{
	for (unsigned i = 0; i < info->param_count; i++)
		if (info->params[i].object == MPI_COMM ||
			info->params[i].object == MPI_WINDOW ||
			info->params[i].object == MPI_FILE)
			return &info->params[i];
	return NULL;
}

/* Looked for once. Threads that do so at a time find the same. */
static const struct call_param *subject_of(unsigned index)
{
	static struct {
		const struct call_param *param;
		uint8_t known;
	} subjects[CALL_COUNT];

	if (!__atomic_load_n(&subjects[index].known, __ATOMIC_ACQUIRE)) {
		subjects[index].param = find_subject(&mpi_info[index]);
		__atomic_store_n(&subjects[index].known, 1, __ATOMIC_RELEASE);
	}
	return subjects[index].param;
}

/* Of what a call is about; what has no subject is about all ranks. */
static struct mpi_count *count_for(unsigned index, const uint64_t *words)
{
	const struct call_param *p = subject_of(index);

	if (!p)
		return &mpi_counts[0];
	if (p->object == MPI_FILE)
		return count_of_file(
			p->stars ? *(void **)words[p->word] : (void *)words[p->word]);
	return count_of(p->stars ? *(int32_t *)words[p->word] : (int32_t)words[p->word]);
}

#define WORDS     16
#define REGISTERS 6

/* Words are in the order of parameters. What is none of a parameter is zero; not by an initializer, of which compilers
 * make `rep stos`. */
static void take_words(const struct call_info *info, const uint64_t registers[REGISTERS],
	const uint64_t *stack, uint64_t words[WORDS])
{
	volatile uint64_t *rest = words;

	for (unsigned i = 0; i < REGISTERS; i++)
		words[i] = registers[i];
	for (unsigned i = REGISTERS; i < WORDS; i++)
		rest[i] = 0;
	for (unsigned i = info->param_count; i-- && info->params[i].word >= REGISTERS;)
		words[info->params[i].word] = stack[info->params[i].word - REGISTERS];
}

/* Only some members of the communicator make the call, and each as often as it likes. The count is there
 * while they do. */
static int call_of_some(
	unsigned index, struct mpi_count *parent, void *code, const uint64_t *words)
{
	struct mpi_count *c =
		new_count(parent->number | MPI_NUMBER_OF_SOME, 0, 0, parent->calls_of_some++);
	int r;

	if (!c)
		return mpi_call_code(code, words);
	enter_collective(c, index);
	r = mpi_call_code(code, words);
	drop_count(c);
	return r;
}

/* Members of groups make it, without a communicator to count it on. */
static int is_of_group(unsigned index)
{
	return index == INDEX_MPI_Comm_create_from_group ||
	       index == INDEX_MPI_Intercomm_create_from_groups;
}

/* It is counted on the communicator of one group, and needs the other one. */
static int waits_beyond(unsigned index)
{
	return index == INDEX_MPI_Intercomm_create;
}

/* Nobody waits for what this rank does on a communicator of its own. */
static int is_alone(const struct mpi_count *c)
{
	return c->members == 1 || c->number == MPI_NUMBER_SELF;
}

/* ---- persistent requests of collective calls: each start is such a call ---- */

STUB_HIDDEN struct mpi_count *gate_enter(int32_t request, unsigned index)
{
	const struct mpi_request *r = request_of(request);
	struct mpi_count *c = r && r->kind == MPI_PERSISTENT_COLLECTIVE ? r->counts : NULL;

	if (!c || c->number != r->number || is_alone(c))
		return NULL;
	enter_collective(c, index);
	return c;
}

STUB_HIDDEN struct mpi_count *gate_enter_all(unsigned index)
{
	if (is_alone(&mpi_counts[0]))
		return NULL;
	enter_collective(&mpi_counts[0], index);
	return &mpi_counts[0];
}

STUB_HIDDEN void gate_leave(struct mpi_count *c)
{
	if (c)
		__atomic_add_fetch(&c->left, 1, __ATOMIC_SEQ_CST);
}

/* ---- from entry points ---- */

STUB_HIDDEN int mpi_counted_call(
	unsigned index, const uint64_t registers[6], const uint64_t *stack, void *code)
{
	const struct call_info *info = &mpi_info[index];
	uint64_t words[WORDS];
	struct mpi_count *c;
	int r, alone, beyond = waits_beyond(index);

	take_words(info, registers, stack, words);
	if (is_of_group(index))
		return call_of_some(index, &mpi_counts[0], code, words);
	c = count_for(index, words);
	if (!c)
		return mpi_call_code(code, words);
	if (index == INDEX_MPI_Comm_create_group)
		return call_of_some(index, c, code, words);
	alone = is_alone(c) && !beyond;
	if (!alone)
		enter_collective(c, index);
	if (beyond)
		__atomic_add_fetch(&c->beyond, 1, __ATOMIC_SEQ_CST);
	r = mpi_call_code(code, words);
	if (beyond)
		__atomic_sub_fetch(&c->beyond, 1, __ATOMIC_SEQ_CST);
	if (!r && info->class == API_DESTROY)
		drop_count(c);
	else if (!alone)
		__atomic_add_fetch(&c->left, 1, __ATOMIC_SEQ_CST);
	return r;
}
