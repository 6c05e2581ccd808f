/*
 * requests.c - the table of requests, and how a call is made of steps.
 */
#include "stubs/mpi/requests.h"

#include "shared/call_info.h"
#include "stubs/crossing/crossing.h"
#include "stubs/mpi/messages_buffered.h"
#include "stubs/mpi/partitioned.h"

#include "mpi.index.h"

STUB_HIDDEN struct mpi_messages mpi_messages = {
	.world_handler = ERRORS_ARE_FATAL,
};

extern STUB_HIDDEN const struct call_info mpi_info[];

/* ---- the table ---- */

/* In a guarded body. */
static int add_block(void *unused)
{
	struct mpi_messages *m = &mpi_messages;
	struct mpi_request *block = records_alloc(MPI_REQUEST_BLOCK * sizeof(*block));
	uint32_t first;

	(void)unused;
	if (!block || m->used / MPI_REQUEST_BLOCK == MPI_REQUEST_BLOCKS)
		return -1;
	messages_lock();
	first = m->used;
	m->blocks[first / MPI_REQUEST_BLOCK] = block;
	for (uint32_t i = MPI_REQUEST_BLOCK; i--;) {
		block[i].index = first + i;
		block[i].next = m->free;
		m->free = &block[i];
	}
	m->used += MPI_REQUEST_BLOCK;
	messages_unlock();
	return 0;
}

STUB_HIDDEN struct mpi_request *request_take(void)
{
	struct mpi_messages *m = &mpi_messages;
	struct mpi_request *r;

	messages_lock();
	r = m->free;
	if (r)
		m->free = r->next;
	messages_unlock();
	return r;
}

/* Perhaps by the last request that used the datatype or operation, which the program has freed. */
static void drop_object(struct mpi_object *o)
{
	int32_t real = o->real;

	if (__atomic_sub_fetch(&o->uses, 1, __ATOMIC_SEQ_CST) || o->references)
		return;
	if (o->kind == MPI_OP)
		LOWER_CALL(MPI_Op_free, (int32_t *))(&real);
	else
		LOWER_CALL(MPI_Type_free, (int32_t *))(&real);
	object_drop(o);
}

STUB_HIDDEN void request_untake(struct mpi_request *r)
{
	messages_lock();
	r->next = mpi_messages.free;
	mpi_messages.free = r;
	messages_unlock();
}

STUB_HIDDEN void request_give_back(struct mpi_request *r)
{
	if (r->type)
		drop_object(r->type);
	if (r->packed)
		queue_give_back(r->packed);
	while (r->origin && r->origin->object_count)
		drop_object(r->origin->objects[--r->origin->object_count]);
	r->type = NULL;
	r->message = r->packed = NULL;
	if (r->in && r->kind == MPI_PARTITIONED_SEND)
		buffer_end(r->in);
	r->in = NULL;
	r->pair = NULL;
	r->kind = MPI_NO_REQUEST;
	r->completed = r->orphan = r->fortran = r->send_error = 0;
	r->active = r->held = r->counted = r->persistent = r->own_op = r->cancelled = 0;
	if (r->freed)
		__atomic_sub_fetch(&mpi_messages.freed, 1, __ATOMIC_RELAXED);
	r->freed = 0;
	request_untake(r);
}

static void name_request(struct mpi_request *r)
{
	r->handle = MPI_VIRTUAL | MPI_REQUEST << MPI_KIND_SHIFT | r->index;
}

STUB_HIDDEN void request_describe(struct mpi_request *r, const struct message_call *c)
{
	struct mpi_object *comm = comm_object(c->comm);

	name_request(r);
	r->mode = c->mode;
	r->call = c->index;
	r->peer = c->peer;
	r->tag = c->tag;
	r->comm = c->comm;
	r->datatype = c->datatype;
	r->buffer = c->buffer;
	r->count = c->count;
	r->counts = comm ? comm->count : NULL;
	r->number = r->counts ? r->counts->number : 0;
	r->packed = c->packed;
}

STUB_HIDDEN void request_posted(struct mpi_request *r)
{
	r->active = 1;
	r->posted = are_threads()
			    ? __atomic_add_fetch(&mpi_messages.posted, 1, __ATOMIC_RELAXED)
			    : ++mpi_messages.posted;
}

STUB_HIDDEN void request_use_type(struct mpi_request *r)
{
	if (!mpi_is_virtual(r->datatype))
		return;
	r->type = object_of(r->datatype);
	if (r->type)
		__atomic_add_fetch(&r->type->uses, 1, __ATOMIC_SEQ_CST);
}

STUB_HIDDEN struct mpi_request *request_new(unsigned index, int32_t real, int kind)
{
	struct mpi_request *r;

	while (!(r = request_take()))
		if (add_block(NULL) < 0)
			return NULL;
	name_request(r);
	r->kind = kind;
	r->real = real;
	r->call = index;
	r->counts = NULL;
	r->elder = NULL;
	r->peer = MPI_PROC_NULL;
	r->comm = COMM_WORLD;
	return r;
}

STUB_HIDDEN int32_t request_given(unsigned index, int32_t real, int own_op)
{
	struct mpi_request *r;

	if (real == MPI_REQUEST_NULL)
		return real;
	r = request_new(index, real, MPI_NONBLOCKING_OTHER);
	if (!r)
		return real; /* it is good until there is a restart, and refused until then */
	r->own_op = own_op;
	if (mpi_info[index].class == API_COLLECTIVE || mpi_info[index].class == API_WINDOW ||
		mpi_info[index].class == API_FILE)
		request_posted(r);
	return r->handle;
}

/* ---- requests that are made again by their calls ---- */

STUB_HIDDEN struct mpi_request *request_with_origin(unsigned index, int32_t real, int kind)
{
	struct mpi_request *r = request_new(index, real, kind);
	struct mpi_origin *o;

	if (!r)
		return NULL;
	if (!r->origin)
		r->origin = records_alloc(sizeof(*r->origin));
	o = r->origin;
	if (!o) {
		request_give_back(r);
		return NULL;
	}
	raw_zero(o->words, sizeof(o->words));
	raw_zero(o->counts, sizeof(o->counts));
	raw_zero(o->kinds, sizeof(o->kinds));
	o->order = 0;
	o->sequence = __atomic_add_fetch(&mpi_messages.posted, 1, __ATOMIC_RELAXED);
	o->array_size = o->object_count = 0;
	return r;
}

STUB_HIDDEN int origin_reserve(struct mpi_origin *o, uint64_t bytes, uint32_t objects)
{
	if (o->array_room < bytes) {
		o->arrays = records_alloc(2 * bytes);
		o->array_room = o->arrays ? 2 * bytes : 0;
	}
	if (o->object_room < objects) {
		o->objects = records_alloc(2ul * objects * sizeof(*o->objects));
		o->object_room = o->objects ? 2 * objects : 0;
	}
	return o->array_room < bytes || o->object_room < objects ? -1 : 0;
}

STUB_HIDDEN void origin_use(struct mpi_origin *o, struct mpi_object *object)
{
	__atomic_add_fetch(&object->uses, 1, __ATOMIC_SEQ_CST);
	o->objects[o->object_count++] = object;
}

STUB_HIDDEN void *origin_copy(struct mpi_origin *o, const void *from, uint64_t size)
{
	void *to = o->arrays + o->array_size;

	raw_copy(to, from, size);
	o->array_size += (size + 7) & ~7ul;
	return to;
}

/* ---- counts ---- */

STUB_HIDDEN void message_sent(struct mpi_count *counts, int peer)
{
	if (counts && counts->peers && peer >= 0 && (uint32_t)peer < counts->size)
		count_up(&counts->peers[peer].sent);
	count_up(&mpi_messages.steps);
}

STUB_HIDDEN void message_received(struct mpi_count *counts, int peer)
{
	if (counts && counts->peers && peer >= 0 && (uint32_t)peer < counts->size)
		count_up(&counts->peers[peer].received);
	count_up(&mpi_messages.steps);
}

/* A send that could be cancelled has sent nothing. */
static void message_unsent(struct mpi_count *counts, int peer)
{
	if (counts && counts->peers && peer >= 0 && (uint32_t)peer < counts->size)
		__atomic_sub_fetch(&counts->peers[peer].sent, 1, __ATOMIC_RELAXED);
}

/* ---- complete ---- */

/* The communicator may have been freed, and what is counted there be another one's. */
static struct mpi_count *own_counts(const struct mpi_request *r)
{
	return r->counts && r->counts->number == r->number ? r->counts : NULL;
}

/* An operation on a window with a request: a rank may look so, again and again, for what another one is to change. That
 * it has looked once more is nothing new. */
static int is_of_window(const struct mpi_request *r)
{
	return r->kind == MPI_NONBLOCKING_OTHER && mpi_info[r->call].class == API_WINDOW;
}

static void looked_at_window(const struct mpi_request *r)
{
	mpi_messages.poll_call = r->call;
	count_up(&mpi_messages.polls);
}

static void count_complete(struct mpi_request *r, const int32_t *status)
{
	int cancelled = r->cancelled && mpi_is_cancelled(status);

	if (r->kind == MPI_RECEIVE && r->peer != MPI_PROC_NULL && !r->counted && !cancelled)
		message_received(own_counts(r), status[MPI_STATUS_SOURCE]);
	else if (r->kind == MPI_SEND && cancelled)
		message_unsent(own_counts(r), r->peer);
	else if (is_of_window(r))
		looked_at_window(r);
	else
		count_up(&mpi_messages.steps);
}

/* The send of @r, which is a receive: errors of it the library has told, and its record keeps. */
STUB_HIDDEN int request_is_single(struct mpi_request *r)
{
	struct mpi_request *out = r->pair;
	int32_t status[MPI_STATUS_INTS], real, ignored;
	int flag = 0, error;

	if (!out)
		return 1;
	if (out->held) {
		error = request_complete_held(out, STATUS_IGNORE, &ignored);
	} else {
		real = out->real;
		error = LOWER_CALL(MPI_Test, (int32_t *, int *, int32_t *))(
			&real, &flag, status);
		if (!flag && !error)
			return 0;
		request_complete(out, real, status, &ignored);
	}
	r->send_error = error;
	r->pair = NULL;
	return 1;
}

static void let_go(struct mpi_request *r, int32_t *handle)
{
	if (r->persistent) {
		r->active = r->held = r->counted = r->cancelled = 0;
		return;
	}
	*handle = MPI_REQUEST_NULL;
	request_give_back(r);
}

/* A persistent one of which nothing else is known has kept its real request. */
STUB_HIDDEN void request_complete(
	struct mpi_request *r, int32_t real, const int32_t *status, int32_t *handle)
{
	if (r->active || r->kind == MPI_NONBLOCKING_OTHER)
		count_complete(r, status);
	r->real = real;
	if (real != MPI_REQUEST_NULL)
		r->persistent = 1;
	let_go(r, handle);
}

STUB_HIDDEN int message_failed(int32_t comm, int error)
{
	struct mpi_object *o = comm_object(comm);

	if (error && o)
		LOWER_CALL(MPI_Comm_call_errhandler, (int, int))(o->real, error);
	return error;
}

STUB_HIDDEN int request_complete_held(struct mpi_request *r, int32_t *status, int32_t *handle)
{
	int error = message_failed(r->comm, r->error);

	if (status != STATUS_IGNORE)
		for (int i = 0; i < MPI_STATUS_ERROR; i++)
			status[i] = r->status[i];
	count_up(&mpi_messages.steps);
	let_go(r, handle);
	return error;
}

/* ---- calls of steps ---- */

STUB_HIDDEN int message_once(struct message_call *c)
{
	int r;

	while ((r = mpi_step(c)) == STEP_ROOM)
		if (mpi_guarded(NULL, add_block) < 0)
			return MPI_ERR_INTERN;
	return r < 0 ? MPI_ERR_OTHER : c->result; /* there is no lower half, or none any more */
}

static struct mpi_wait *claim_wait(void)
{
	for (unsigned i = 0; i < MPI_WAITS; i++)
		if (!__atomic_exchange_n(&mpi_messages.waits[i].used, 1, __ATOMIC_ACQUIRE))
			return &mpi_messages.waits[i];
	return NULL;
}

/* What a thread is seen to wait for: one of its requests, or what it probes for. */
static void show_wait(struct mpi_wait *w, const struct message_call *c)
{
	const struct mpi_object *comm = comm_object(c->comm);
	const struct mpi_request *r = c->requests[0] ? c->requests[0] : c->requests[1];
	const struct mpi_count *counts = r ? own_counts(r) : comm ? comm->count : NULL;
	int peer = r ? r->peer : c->peer;

	w->call = c->index;
	w->number = counts ? counts->number : MPI_NUMBER_WORLD;
	w->peer = -1;
	if (r && request_is_partitioned(r)) {
		w->number = r->number;
		w->peer = r->world;
	} else if (counts && counts->peers && peer >= 0 && (uint32_t)peer < counts->size)
		w->peer = counts->peers[peer].world;
}

STUB_HIDDEN int message_wait(struct message_call *c)
{
	struct mpi_wait *w = NULL;
	unsigned steps = 0;
	int r;

	while ((r = mpi_step(c)) > 0) {
		if (r == STEP_ROOM) {
			if (mpi_guarded(NULL, add_block) < 0)
				return MPI_ERR_INTERN;
			continue;
		}
		if (++steps > 1)
			raw(SYS_sched_yield);
		if (steps == 2)
			w = claim_wait();
		if (w)
			show_wait(w, c);
	}
	if (w)
		__atomic_store_n(&w->used, 0, __ATOMIC_RELEASE);
	return r < 0 ? MPI_ERR_OTHER : c->result;
}
