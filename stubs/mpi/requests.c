/*
 * requests.c - the table of requests, and how a call is made of steps.
 */
#include "stubs/mpi/requests.h"

#include "shared/call_info.h"
#include "stubs/crossing/crossing.h"

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

/* The last request that used the datatype, which the program has freed. */
static void drop_type(struct mpi_object *type)
{
	int32_t real = type->real;

	if (__atomic_sub_fetch(&type->uses, 1, __ATOMIC_SEQ_CST) || type->references)
		return;
	BELOW(MPI_Type_free, (int32_t *))(&real);
	object_drop(type);
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
		drop_type(r->type);
	r->type = NULL;
	r->message = NULL;
	r->kind = MPI_NO_REQUEST;
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

STUB_HIDDEN int32_t request_given(unsigned index, int32_t real, int own_op)
{
	struct mpi_request *r;

	if (real == MPI_REQUEST_NULL)
		return real;
	while (!(r = request_take()))
		if (add_block(NULL) < 0)
			return real; /* it is good until there is a restart, and refused until then */
	name_request(r);
	r->kind = MPI_OTHER_REQUEST;
	r->real = real;
	r->call = index;
	r->own_op = own_op;
	r->counts = NULL;
	r->peer = MPI_PROC_NULL;
	if (mpi_info[index].class == API_COLLECTIVE)
		request_posted(r);
	return r->handle;
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

static void count_complete(struct mpi_request *r, const int32_t *status)
{
	int cancelled = r->cancelled && mpi_is_cancelled(status);

	if (r->kind == MPI_RECEIVE && r->peer != MPI_PROC_NULL && !r->counted && !cancelled)
		message_received(own_counts(r), status[MPI_STATUS_SOURCE]);
	else if (r->kind == MPI_SEND && cancelled)
		message_unsent(own_counts(r), r->peer);
	else
		count_up(&mpi_messages.steps);
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
	if (r->active || r->kind == MPI_OTHER_REQUEST)
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
		BELOW(MPI_Comm_call_errhandler, (int, int))(o->real, error);
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
	const struct mpi_count *counts = r ? r->counts : comm ? comm->count : NULL;
	int peer = r ? r->peer : c->peer;

	w->call = c->index;
	w->number = counts ? counts->number : MPI_NUMBER_WORLD;
	w->peer = -1;
	if (counts && counts->peers && peer >= 0 && (uint32_t)peer < counts->size)
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
