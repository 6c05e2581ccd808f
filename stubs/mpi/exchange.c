/*
 * Calls that give out handles, take them back, or are given arrays of them: all alike, told apart by
 * what the API table says of them (struct call_info).
 */
#include "shared/call_info.h"
#include "shared/raw.h"
#include "stubs/crossing/crossing.h"
#include "stubs/mpi/collective_gate.h"
#include "stubs/mpi/files.h"
#include "stubs/mpi/handle_table.h"
#include "stubs/mpi/messages_buffered.h"

#include "mpi.index.h"

#include <string.h>
#include <sys/mman.h>

#define CALL_WORDS 16

extern STUB_HIDDEN const struct call_info mpi_info[];

STUB_HIDDEN int mpi_record_call(
	unsigned index, const uint64_t registers[6], const uint64_t *stack);

/* Handles of one call, as the real library is to have them. */
struct exchange {
	const struct call_info *info;
	const uint64_t *given;
	uint64_t words[CALL_WORDS];
	uint64_t counts[CALL_WORDS]; /* how many are behind a pointer, by parameter */
	int32_t few[64], *handles;
	uint64_t used, mapped;
};

/* ---- how many there are ---- */

extern STUB_HIDDEN int real_MPI_Comm_test_inter(MPI_Comm comm, int *flag),
	real_MPI_Comm_remote_size(MPI_Comm comm, int *size),
	real_MPI_Comm_size(MPI_Comm comm, int *size),
	real_MPI_Comm_rank(MPI_Comm comm, int *rank),
	real_MPI_Topo_test(MPI_Comm comm, int *what),
	real_MPI_Cartdim_get(MPI_Comm comm, int *count),
	real_MPI_Graph_neighbors_count(MPI_Comm comm, int rank, int *count),
	real_MPI_Dist_graph_neighbors_count(MPI_Comm comm, int *in, int *out, int *weighted);

static MPI_Comm communicator_of(const struct exchange *x)
{
	unsigned i = 0;

	while (x->info->params[i].object != MPI_COMM)
		i++;
	return x->given[x->info->params[i].word];
}

enum { GRAPH = 1, CART = 2, DIST_GRAPH = 3 }; /* what MPI_Topo_test says, MPICH's */

typedef MPI_Comm INNER_MPI_Comm;
#define CALL(name, own) real_##name

#include "shared/mpi/array_lengths.inc"

static uint64_t group_size(MPI_Comm comm)
{
	int size = 0;

	real_MPI_Comm_size(comm, &size);
	return size;
}

/* Of an array that is as long as the call's communicator says. */
static uint64_t length_by_communicator(
	const struct exchange *x, const struct call_param *p, int in_place)
{
	MPI_Comm comm = communicator_of(x);

	switch (p->length_kind) {
	case API_RANKS:
		return length_ranks(in_place, comm);
	case API_MEMBERS:
		return group_size(comm);
	case API_SOURCES:
	case API_DESTINATIONS:
		return length_neighbours(p->length_kind == API_DESTINATIONS, comm);
	default:
		return 0;
	}
}

/* The types of a buffer in place are not looked at; it comes three parameters before. */
static int is_in_place(const struct exchange *x, const struct call_param *p)
{
	return x->given[p->word - 3] == (uint64_t)-1;
}

static int64_t count_of(const struct exchange *x, const struct call_param *p)
{
	const struct call_param *length = &x->info->params[p->length];

	switch (p->length_kind) {
	case API_ONE:
		return 1;
	case API_PARAMETER:
		return length->size == 4 ? (int32_t)x->given[length->word]
					 : (int64_t)x->given[length->word];
	case API_RANKS:
		return length_by_communicator(x, p, is_in_place(x, p));
	case API_MEMBERS:
	case API_SOURCES:
	case API_DESTINATIONS:
		return length_by_communicator(x, p, 0);
	}
	return 0; /* of the tools' interface: predefined ones */
}

/* ---- on the way down ---- */

static int32_t real_of(int32_t handle)
{
	struct mpi_object *o = object_of(handle);
	struct mpi_request *r = request_of(handle);

	if (r)
		return r->real;
	return o ? o->real : mpi_is_virtual(handle) ? 0 : handle;
}

static int make_room(struct exchange *x)
{
	uint64_t total = 0;
	long r;

	for (unsigned i = 0; i < x->info->param_count; i++) {
		const struct call_param *p = &x->info->params[i];
		int64_t n = p->object && p->stars && x->given[p->word] ? count_of(x, p) : 0;

		x->counts[i] = n > 0 ? n : 0;
		total += x->counts[i];
	}
	x->handles = x->few;
	if (total <= sizeof(x->few) / sizeof(*x->few))
		return 0;
	x->mapped = total * sizeof(*x->handles);
	r = raw(SYS_mmap, NULL, x->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
	if (raw_failed(r))
		return -1;
	x->handles = (int32_t *)r;
	return 0;
}

static int go_down(struct exchange *x)
{
	if (make_room(x) < 0)
		return -1;
	raw_copy(x->words, x->given, sizeof(x->words));
	for (unsigned i = 0; i < x->info->param_count; i++) {
		const struct call_param *p = &x->info->params[i];
		const int32_t *from = (const int32_t *)x->given[p->word];
		int32_t *to = x->handles + x->used;

		if (p->object == MPI_FILE && !p->stars)
			x->words[p->word] = file_real((void *)x->given[p->word]);
		else if (p->object && !p->stars)
			x->words[p->word] = real_of(x->given[p->word]);
		if (!x->counts[i])
			continue;
		for (uint64_t n = 0; n < x->counts[i]; n++)
			to[n] = p->direction == API_OUT ? 0 : real_of(from[n]);
		x->words[p->word] = (uint64_t)to;
		x->used += x->counts[i];
	}
	return 0;
}

/* ---- and back ---- */

/* What can be given out again: error handlers that are set, a communicator's group, and what
 * datatypes are made of. */
static int is_counted(const struct call_param *p)
{
	return p->object == MPI_ERRHANDLER || p->object == MPI_GROUP ||
	       p->length_kind == API_PARAMETER;
}

/* A call that has failed may have said that there is none. */
static int is_given(const struct call_param *p, int32_t real, int failed)
{
	return failed ? real == MPI_KIND_NULL(p->object) : real != 0;
}

/* It is called by what progresses the request, which may be another thread of the lower half. */
static int has_own_op(const struct exchange *x)
{
	for (unsigned i = 0; i < x->info->param_count; i++) {
		const struct call_param *p = &x->info->params[i];

		if (p->object == MPI_OP && !p->stars && object_of(x->given[p->word]))
			return 1;
	}
	return 0;
}

/* ---- persistent requests of collective calls: their arguments are kept ---- */

/* What has "root" is about the arrays of that rank only. */
static int is_at_root(const struct exchange *x)
{
	int rank = -1, inter = 0, root;

	for (unsigned i = 0; i < x->info->param_count; i++) {
		if (strcmp(x->info->params[i].name, "root"))
			continue;
		root = (int)x->given[x->info->params[i].word];
		real_MPI_Comm_test_inter(communicator_of(x), &inter);
		real_MPI_Comm_rank(communicator_of(x), &rank);
		return root == (inter ? MPI_ROOT : rank);
	}
	return 1;
}

/* Lengths and places are not looked at when their buffer is in place: the last before them. */
static int is_buffer_in_place(const struct exchange *x, const struct call_param *p)
{
	while (p > x->info->params && !(p->stars && !strcmp(p->type, "void")))
		p--;
	return x->given[p->word] == (uint64_t)-1;
}

/* How many elements of an array of parameter @i are to be copied; 0: it is none. */
static uint64_t array_length(const struct exchange *x, unsigned i)
{
	const struct call_param *p = &x->info->params[i];

	if (p->object)
		return p->object == MPI_DATATYPE && p->stars ? x->counts[i] : 0;
	if (p->length_kind != API_RANKS && p->length_kind != API_MEMBERS &&
		p->length_kind != API_SOURCES && p->length_kind != API_DESTINATIONS)
		return 0;
	if (!x->given[p->word] || is_buffer_in_place(x, p) || !is_at_root(x))
		return 0;
	return length_by_communicator(x, p, 0);
}

static void keep_array(struct mpi_origin *o, const struct exchange *x, unsigned i, uint64_t n)
{
	const struct call_param *p = &x->info->params[i];
	const int32_t *handles = (const int32_t *)x->given[p->word];

	o->words[i] = (uint64_t)origin_copy(o, handles, n * p->size);
	if (!p->object)
		return;
	o->kinds[i] = MPI_WORD_HANDLES;
	o->counts[i] = n;
	for (uint64_t k = 0; k < n; k++)
		if (object_of(handles[k]))
			origin_use(o, object_of(handles[k]));
}

static void keep_word(struct mpi_origin *o, const struct exchange *x, unsigned i)
{
	const struct call_param *p = &x->info->params[i];
	int is_handle = p->object && !p->stars; /* no array of none, which may be anywhere */
	struct mpi_object *used;

	o->words[i] = x->given[p->word];
	if (p->object == MPI_INFO)
		o->words[i] = MPI_KIND_NULL(MPI_INFO); /* hints; MPICH has none of its own */
	else if (p->object == MPI_REQUEST)
		o->kinds[i] = MPI_WORD_RESULT;
	else if (is_handle)
		o->kinds[i] = MPI_WORD_HANDLE;
	used = is_handle && (p->object == MPI_DATATYPE || p->object == MPI_OP)
		       ? object_of(o->words[i])
		       : NULL;
	if (used)
		origin_use(o, used);
}

static int keep_arguments(struct mpi_origin *o, const struct exchange *x)
{
	uint64_t bytes = 0, n;
	uint32_t objects = 0;

	for (unsigned i = 0; i < x->info->param_count; i++) {
		n = array_length(x, i);
		bytes += (n * x->info->params[i].size + 7) & ~7ul;
		objects += 1 + (x->info->params[i].object ? n : 0);
	}
	if (origin_reserve(o, bytes, objects))
		return -1;
	for (unsigned i = 0; i < x->info->param_count; i++) {
		n = array_length(x, i);
		if (n)
			keep_array(o, x, i, n);
		else
			keep_word(o, x, i);
	}
	return 0;
}

static int32_t lasting_given(const struct exchange *x, unsigned index, int32_t real)
{
	struct mpi_object *comm;
	struct mpi_request *r;

	if (real == MPI_REQUEST_NULL)
		return real;
	r = request_with_origin(index, real, MPI_PERSISTENT_COLLECTIVE);
	if (r && keep_arguments(r->origin, x)) {
		request_give_back(r);
		r = NULL;
	}
	if (!r) {
		mpi_state.called[index] =
			MPI_CALLED_UNSAVED; /* a restart cannot make it again */
		return real;
	}
	r->persistent = 1;
	r->own_op = has_own_op(x);
	r->comm = communicator_of(x);
	comm = comm_object(r->comm);
	r->counts = comm ? comm->count : NULL;
	if (!r->counts)
		mpi_state.called[index] =
			MPI_CALLED_UNSAVED; /* nor one that no communicator's list has */
	r->number = r->counts ? r->counts->number : 0;
	r->origin->order = r->counts ? r->counts->entered : 0;
	return r->handle;
}

/* Of a nonblocking call on a file that all its ranks make. */
static int32_t file_given(const struct exchange *x, unsigned index, int32_t real)
{
	int32_t handle = request_given(index, real, 0);
	struct mpi_request *r = request_of(handle);
	struct mpi_file *f = file_of((void *)x->given[0]);

	if (r && f && x->info->counted)
		request_is_of_all(r, f);
	return handle;
}

static int32_t given_out(
	const struct exchange *x, unsigned index, const struct call_param *p, int32_t real)
{
	if (p->object != MPI_REQUEST)
		return handle_given(p->object, real, is_counted(p));
	if (x->info->class == API_FILE)
		return file_given(x, index, real);
	return x->info->again ? lasting_given(x, index, real)
			      : request_given(index, real, has_own_op(x));
}

static void come_up(struct exchange *x, unsigned index, int failed)
{
	for (unsigned i = 0; i < x->info->param_count; i++) {
		const struct call_param *p = &x->info->params[i];
		const int32_t *from = (const int32_t *)x->words[p->word];
		int32_t *to = (int32_t *)x->given[p->word];

		if (!x->counts[i] || p->direction == API_IN)
			continue;
		for (uint64_t n = 0; n < x->counts[i]; n++)
			if (is_given(p, from[n], failed) &&
				(p->direction == API_OUT || !object_of(to[n])))
				to[n] = given_out(x, index, p, from[n]);
	}
}

/* The session of what a call is about; 0: none. */
static int32_t session_of_call(const struct exchange *x)
{
	for (unsigned i = 0; i < x->info->param_count; i++) {
		const struct call_param *p = &x->info->params[i];
		const struct mpi_object *o;

		if (p->stars)
			continue;
		if (p->object == MPI_SESSION)
			return x->given[p->word];
		o = p->object == MPI_GROUP || p->object == MPI_COMM
			    ? object_of(x->given[p->word])
			    : NULL;
		if (o && o->session)
			return o->session;
	}
	return 0;
}

/* Groups and communicators that the call has made belong to it: there may be a buffer of it (buffers.c). */
static void note_session(const struct exchange *x)
{
	int32_t session = mpi_state.sessions ? session_of_call(x) : 0;

	for (unsigned i = 0; i < x->info->param_count && session; i++) {
		const struct call_param *p = &x->info->params[i];
		struct mpi_object *o;

		if ((p->object != MPI_GROUP && p->object != MPI_COMM) || p->stars != 1 ||
			p->direction != API_OUT || x->counts[i] != 1)
			continue;
		o = object_of(*(int32_t *)x->given[p->word]);
		if (o && !o->session)
			o->session = session;
	}
}

/* A communicator that comes with a request is not there yet. */
static int is_begun(unsigned index)
{
	return index == INDEX_MPI_Comm_idup || index == INDEX_MPI_Comm_idup_with_info;
}

/* Communicators that a collective call has made, which may be none on this rank. */
static void number_made(const struct exchange *x, unsigned index)
{
	for (unsigned i = 0; i < x->info->param_count; i++) {
		const struct call_param *p = &x->info->params[i];
		struct mpi_object *o;

		if (p->object != MPI_COMM || !p->stars)
			continue;
		o = object_of(*(int32_t *)x->given[p->word]);
		mpi_messages.handlers |= index == INDEX_MPI_Comm_create_from_group ||
					 index == INDEX_MPI_Intercomm_create_from_groups;
		if (o && is_begun(index))
			gate_number_copy(o, comm_object(x->given[0]));
		else if (o)
			gate_number(o);
	}
}

static void free_handles(const struct exchange *x)
{
	if (x->mapped)
		raw(SYS_munmap, x->handles, x->mapped);
}

/* ---- objects that go ---- */

static const struct call_param *destroyed_parameter(const struct call_info *info)
{
	const struct call_param *p = info->params;

	return info->class == API_DESTROY && p->object && p->stars ? p : NULL;
}

/* Whether the real library is to have it still: it may be asked what is set of a communicator, and
 * calls what attributes are deleted by. */
static int stays_in_library(const struct mpi_object *o)
{
	return o->references || o->uses || o->kind == MPI_ERRHANDLER ||
	       (o->kind == MPI_KEYVAL && o->attributes);
}

static int destroy_object(
	struct exchange *x, unsigned index, struct mpi_object *o, int32_t *handle)
{
	int r;

	if (o->references)
		o->references--;
	if (stays_in_library(o)) {
		*handle = MPI_KIND_NULL(o->kind);
		return 0;
	}
	o->dying = 1;
	r = mpi_call_words(&mpi_targets[index], x->words);
	if (r) {
		o->references++;
		o->dying = 0;
		return r;
	}
	*handle = MPI_KIND_NULL(o->kind);
	if (o->kind == MPI_COMM)
		gate_freed(o);
	if (o->buffer)
		buffer_end(o->buffer);
	object_drop(o);
	return 0;
}

/* Errors of messages may have to be told the right handler (messages.c). */
static void handler_set(MPI_Comm comm, MPI_Errhandler handler)
{
	if (comm == COMM_WORLD)
		mpi_messages.world_handler = handler;
	mpi_messages.handlers |= comm != COMM_WORLD;
}

/* Nobody can ask the library. */
static void note_committed(int32_t handle)
{
	struct mpi_object *o = object_of(handle);

	if (o)
		o->committed = 1;
}

STUB_HIDDEN int mpi_perform(unsigned index, const uint64_t *arguments)
{
	struct exchange x = {.info = &mpi_info[index], .given = arguments};
	const struct call_param *p = destroyed_parameter(x.info);
	int32_t *handle = p ? (int32_t *)arguments[p->word] : NULL;
	struct mpi_object *o = handle ? object_of(*handle) : NULL;
	int r;

	if (go_down(&x) < 0)
		return MPI_ERR_INTERN;
	if (o) {
		r = destroy_object(&x, index, o, handle);
	} else {
		r = mpi_call_words(&mpi_targets[index], x.words);
		come_up(&x, index, r);
		if (!r)
			note_session(&x);
		if (!r && x.info->class == API_COLLECTIVE)
			number_made(&x, index);
	}
	if (!r && index == INDEX_MPI_Type_commit)
		note_committed(*(int32_t *)arguments[0]);
	if (!r && (index == INDEX_MPI_Comm_set_errhandler || index == INDEX_MPI_Errhandler_set))
		handler_set(arguments[0], arguments[1]);
	free_handles(&x);
	return r;
}

STUB_HIDDEN int mpi_record_call(
	unsigned index, const uint64_t registers[6], const uint64_t *stack)
{
	uint64_t arguments[CALL_WORDS] = {0};

	call_take_arguments(&mpi_info[index], registers, stack, arguments);
	return mpi_perform(index, arguments);
}
