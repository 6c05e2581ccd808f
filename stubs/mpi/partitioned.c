/*
 * partitioned.c - partitioned requests are the stub's own. The partitions of a send are packed, one by one as they are ready, into one message behind
 * a header that says which request it is for, and the last one sends it, on a communicator made for that (struct mpi_state). Where it is received it
 * is a message like any other for a checkpoint: it is counted, drained into the queue of that communicator, and found there. What is ready of a send
 * that is not complete is memory, and in the image. So nothing is made again at a restart.
 *
 * As the message is a copy, the send is complete when the one before it of the same request has been received: nothing is received before the program
 * asks for it, and a rank may wait for its sends first. Of each request there are two copies at most.
 *
 * A receive has its message as a whole: MPI_Parrived says of all partitions that they have arrived, or of none, as MPICH 4.0 does.
 */
#include <limits.h>

#include "stubs/crossing/crossing.h"
#include "stubs/mpi/messages_buffered.h"
#include "stubs/mpi/partitioned.h"

#include "mpi.index.h"

/* In front of the data. */
struct part_header {
	uint64_t number; /* of the communicator */
	uint64_t order;
	int32_t tag;
	uint32_t reserved[3];
};

/* Requests of two ranks on a communicator with the same tag belong together in the order in which they were made. */
struct part_channel {
	struct part_channel *next;
	uint64_t number; /* of the communicator */
	int32_t peer, tag;
	uint64_t sends, receives; /* requests made */
};

extern STUB_HIDDEN int real_MPI_Comm_dup(MPI_Comm comm, MPI_Comm *made),
	real_MPI_Comm_free(MPI_Comm *comm),
	real_MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler),
	real_MPI_Comm_call_errhandler(MPI_Comm comm, int error),
	real_MPI_Type_size_c(MPI_Datatype type, MPI_Count *size),
	real_MPI_Type_get_extent_c(MPI_Datatype type, MPI_Count *lower, MPI_Count *extent),
	real_MPI_Type_size(MPI_Datatype type, int *size),
	real_MPI_Type_get_extent(MPI_Datatype type, MPI_Aint *lower, MPI_Aint *extent),
	real_MPI_Pack_size(int count, int type, int comm, int *size);

/* ---- the communicator ---- */

STUB_HIDDEN void partitions_come_up(void)
{
	struct mpi_state *s = &mpi_state;
	struct mpi_object *o;
	MPI_Comm made;

	/* There are none before MPI 4.0. */
	s->partitions = NULL;
	if (s->version < 4 || real_MPI_Comm_dup(COMM_WORLD, &made))
		return;
	o = object_new(MPI_COMM, made);
	if (!o)
		return;
	real_MPI_Comm_set_errhandler(o->handle, ERRORS_RETURN);
	if (!gate_number_partitions(o))
		s->partitions = o;
}

STUB_HIDDEN void partitions_end(void)
{
	struct mpi_object *o = mpi_state.partitions;
	MPI_Comm real;

	mpi_state.partitions = NULL;
	if (!o)
		return;
	real = o->real;
	(void)real_MPI_Comm_free(&real);
	object_drop(o);
}

/* ---- made ---- */

struct part_init {
	unsigned index;
	enum mpi_request_kind kind;
	void *buffer;
	int parts;
	MPI_Count count;
	int type, peer, tag, comm, info, *request;
};

static struct part_channel *channel_of(uint64_t number, int peer, int tag)
{
	static struct part_channel *channels;
	struct part_channel *c = channels;

	while (c && (c->number != number || c->peer != peer || c->tag != tag))
		c = c->next;
	if (c)
		return c;
	c = records_alloc(sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct part_channel){
		.next = channels, .number = number, .peer = peer, .tag = tag};
	channels = c;
	return c;
}

/* Mistakes are the library's to report; so are requests on communicators of which nothing is counted, and what these leave is not saved. */
static int make_in_library(const struct part_init *p)
{
	const uint64_t words[16] = {(uint64_t)p->buffer, p->parts, p->count, p->type, p->peer,
		p->tag, p->comm, p->info, (uint64_t)p->request};
	int error = mpi_perform(p->index, words);
	struct mpi_request *r = error ? NULL : request_of(*p->request);

	if (r) {
		r->kind = MPI_PARTITIONED_BELOW;
		r->persistent = 1;
	}
	if (!error)
		mpi_state.called[p->index] = MPI_CALLED_UNSAVED;
	return error;
}

/* One that the program may communicate with. */
static int is_type(int type)
{
	int size;

	/* The library says so, also of copies that nobody has committed; the communicator's handler returns. */
	return !real_MPI_Pack_size(0, type, mpi_state.partitions->handle, &size);
}

static int is_ours(const struct part_init *p, const struct mpi_object *comm)
{
	return mpi_state.partitions && comm && comm->count && comm->count->peers &&
	       p->parts > 0 && p->count >= 0 && p->tag >= 0 && p->tag <= mpi_state.tag_ub &&
	       (p->peer == MPI_PROC_NULL ||
		       (p->peer >= 0 && (uint32_t)p->peer < comm->count->size)) &&
	       is_type(p->type);
}

/* Libraries before MPI 4.0, which a restart may have, have no functions for large counts. */
static int size_of(int type, MPI_Count *size)
{
	int r = real_MPI_Type_size_c(type, size), small = 0;

	if (r != MPI_ERR_UNSUPPORTED_OPERATION)
		return r;
	r = real_MPI_Type_size(type, &small);
	*size = small;
	return r;
}

static int extent_of(int type, MPI_Count *extent)
{
	MPI_Count lower;
	MPI_Aint address;
	int r = real_MPI_Type_get_extent_c(type, &lower, extent);

	return r == MPI_ERR_UNSUPPORTED_OPERATION
		       ? real_MPI_Type_get_extent(type, &address, extent)
		       : r;
}

static int describe(struct mpi_request *r, const struct part_init *p, struct mpi_count *counts)
{
	struct part_channel *c = channel_of(counts->number, p->peer, p->tag);
	MPI_Count extent, size;
	int error = size_of(p->type, &size);

	if (!error)
		error = extent_of(p->type, &extent);
	if (p->kind == MPI_PARTITIONED_SEND)
		r->in = buffer_new();
	if (error || !c || (p->kind == MPI_PARTITIONED_SEND && !r->in))
		return error ? error : MPI_ERR_OTHER;
	if (r->in)
		r->in->size = INT64_MAX;
	r->buffer = p->buffer;
	r->count = p->count;
	r->datatype = p->type;
	r->comm = p->comm;
	r->peer = p->peer;
	r->tag = p->tag;
	r->counts = counts;
	r->number = counts->number;
	r->parts = p->parts;
	r->part_size = p->count * size;
	r->part_extent = p->count * extent;
	r->world = p->peer == MPI_PROC_NULL ? MPI_PROC_NULL : counts->peers[p->peer].world;
	r->order = p->kind == MPI_PARTITIONED_SEND ? ++c->sends : ++c->receives;
	r->persistent = 1;
	r->sent = 0;
	return 0;
}

static int make(void *argument)
{
	const struct part_init *p = argument;
	struct mpi_object *comm = comm_object(p->comm);
	struct mpi_request *r;
	int error;

	if (!is_ours(p, comm))
		return make_in_library(p);
	r = request_new(p->index, MPI_REQUEST_NULL, p->kind);
	if (!r)
		return MPI_ERR_INTERN;
	error = describe(r, p, comm->count);
	if (error) {
		request_give_back(r);
		return error;
	}
	request_use_type(r);
	*p->request = r->handle;
	return 0;
}

/* One at a time, as the order counts. */
static int make_locked(void *argument)
{
	static uint32_t lock;
	int r;

	raw_lock(&lock);
	r = make(argument);
	raw_unlock(&lock);
	return r;
}

OPEN(MPI_Psend_init, (const void *buffer, int parts, MPI_Count count, int type, int to, int tag,
			     int comm, int info, int *request))
{
	struct part_init p = {INDEX_MPI_Psend_init, MPI_PARTITIONED_SEND, (void *)buffer, parts,
		count, type, to, tag, comm, info, request};

	return mpi_guarded(&p, make_locked);
}

OPEN(MPI_Precv_init, (void *buffer, int parts, MPI_Count count, int type, int from, int tag,
			     int comm, int info, int *request))
{
	struct part_init p = {INDEX_MPI_Precv_init, MPI_PARTITIONED_RECEIVE, buffer, parts,
		count, type, from, tag, comm, info, request};

	return mpi_guarded(&p, make_locked);
}

/* ---- begun ---- */

static int failed(const struct mpi_request *r, int error)
{
	/* It may have been freed. */
	if (comm_object(r->comm) && r->counts->number == r->number)
		(void)real_MPI_Comm_call_errhandler(r->comm, error);
	return error;
}

static void hold(struct mpi_request *r, int source, int tag, uint64_t size)
{
	raw_zero(r->status, sizeof(r->status));
	r->status[MPI_STATUS_COUNT] = (int32_t)size;
	r->status[MPI_STATUS_COUNT_HIGH] = (int32_t)(size >> 32) << 1;
	r->status[MPI_STATUS_SOURCE] = source;
	r->status[MPI_STATUS_TAG] = tag;
	__atomic_store_n(&r->held, 1, __ATOMIC_RELEASE);
}

static int activate(void *argument)
{
	struct mpi_request *r = argument;

	if (r->packed)
		*(struct part_header *)r->packed->bytes = (struct part_header){
			.number = r->number, .order = r->order, .tag = r->tag};
	r->ready = r->sent = 0;
	r->error = 0;
	request_posted(r);
	if (r->kind == MPI_PARTITIONED_RECEIVE && r->peer == MPI_PROC_NULL)
		hold(r, MPI_PROC_NULL, MPI_ANY_TAG, 0);
	return 0;
}

static uint64_t message_size(const struct mpi_request *r)
{
	return sizeof(struct part_header) + r->parts * (uint64_t)r->part_size;
}

STUB_HIDDEN int partitioned_start(struct mpi_request *r)
{
	if (r->active)
		return failed(r, MPI_ERR_REQUEST);
	if (r->kind == MPI_PARTITIONED_SEND && !r->packed) {
		r->packed = queue_memory(message_size(r));
		if (!r->packed)
			return failed(r, MPI_ERR_OTHER);
	}
	return mpi_guarded(r, activate);
}

/* ---- sent ---- */

static int send_whole(unsigned index, struct mpi_request *r)
{
	struct message_call c;
	int error = 0;

	if (r->peer != MPI_PROC_NULL) {
		message_call_about(&c, buffered_send, index, r->packed->bytes, message_size(r),
			BYTE, r->world, 0, mpi_state.partitions->handle);
		c.packed = r->packed;
		c.in = r->in;
		error = message_once(&c);
		r->packed = c.packed;
	}
	r->error = error;
	__atomic_store_n(&r->sent, 1, __ATOMIC_RELEASE);
	return error;
}

static int is_partitioned(const struct mpi_request *r, enum mpi_request_kind kind)
{
	return r && r->kind == kind;
}

/* No handler is called. */
static int pack(const struct mpi_request *r, int part)
{
	const char *from = (const char *)r->buffer + part * r->part_extent;
	char *to = r->packed->bytes + sizeof(struct part_header) + part * r->part_size;
	int64_t packed;

	return buffered_pack(from, r->count, r->datatype, to, r->part_size, &packed,
		mpi_state.partitions->handle);
}

static int ready(unsigned index, struct mpi_request *r, int part)
{
	int error;

	if (!r->active || part < 0 || part >= r->parts)
		return failed(r, MPI_ERR_ARG);
	error = pack(r, part);
	if (!error && __atomic_add_fetch(&r->ready, 1, __ATOMIC_ACQ_REL) == r->parts)
		error = send_whole(index, r);
	return error ? failed(r, error) : 0;
}

extern STUB_HIDDEN int real_MPI_Pready(int partition, int request),
	real_MPI_Pready_list(int n, const int *partitions, int request),
	real_MPI_Pready_range(int low, int high, int request),
	real_MPI_Parrived(int request, int partition, int *flag);

static int32_t real_request(int32_t handle)
{
	const struct mpi_request *r = request_of(handle);

	return r ? r->real : handle;
}

OPEN(MPI_Pready, (int part, int request))
{
	struct mpi_request *r = request_of(request);

	return is_partitioned(r, MPI_PARTITIONED_SEND)
		       ? ready(INDEX_MPI_Pready, r, part)
		       : real_MPI_Pready(part, real_request(request));
}

OPEN(MPI_Pready_list, (int n, const int *parts, int request))
{
	struct mpi_request *r = request_of(request);
	int error = 0;

	if (!is_partitioned(r, MPI_PARTITIONED_SEND))
		return real_MPI_Pready_list(n, parts, real_request(request));
	for (int i = 0; i < n && !error; i++)
		error = ready(INDEX_MPI_Pready_list, r, parts[i]);
	return error;
}

OPEN(MPI_Pready_range, (int low, int high, int request))
{
	struct mpi_request *r = request_of(request);
	int error = 0;

	if (!is_partitioned(r, MPI_PARTITIONED_SEND))
		return real_MPI_Pready_range(low, high, real_request(request));
	for (int i = low; i <= high && !error; i++)
		error = ready(INDEX_MPI_Pready_range, r, i);
	return error;
}

/* ---- received ---- */

static int is_whole(struct mpi_message *m)
{
	int32_t status[MPI_STATUS_INTS];
	int flag;

	return m->request == MPI_REQUEST_NULL ||
	       (!LOWER_CALL(MPI_Test, (int32_t *, int *, int32_t *))(
			&m->request, &flag, status) &&
		       flag);
}

/* The oldest message for @r. Of one source none is looked at behind one that has not come as a whole. */
static struct mpi_message *take_message(struct mpi_count *counts, const struct mpi_request *r)
{
	struct mpi_message **at = &counts->messages, *m;

	for (; (m = *at); at = &m->next) {
		const struct part_header *h = (const struct part_header *)m->bytes;

		if (m->source != r->world)
			continue;
		if (!is_whole(m))
			return NULL;
		if (h->number != r->number || h->order != r->order || h->tag != r->tag)
			continue;
		*at = m->next;
		mpi_messages.queued--;
		return m;
	}
	return NULL;
}

/* What has come from the source of @r, whichever request it is for. 0: nothing. */
static int begin_message(struct mpi_object *comm, const struct mpi_request *r)
{
	int32_t status[MPI_STATUS_INTS], real;
	struct mpi_message *m, **at = &comm->count->messages;
	uint64_t size;
	int flag = 0, failed;

	if (LOWER_CALL(MPI_Iprobe, (int, int, int, int *, int32_t *))(
		    r->world, MPI_ANY_TAG, comm->real, &flag, status) ||
		!flag)
		return 0;
	size = mpi_received_size(status);
	m = queue_memory_in_step(size);
	/* Without memory it stays in the library, and is looked for again. Nobody else takes it. */
	if (!m)
		return 0;
	if (LOWER_CALL(MPI_Improbe, (int, int, int, int *, int32_t *, int32_t *))(
		    r->world, MPI_ANY_TAG, comm->real, &flag, &real, status)) {
		queue_give_back(m);
		return 0;
	}
	m->source = r->world;
	m->tag = 0;
	failed = size <= INT32_MAX
			 ? LOWER_CALL(MPI_Imrecv, (void *, int, int, int32_t *, int32_t *))(
				   m->bytes, (int)size, BYTE, &real, &m->request)
			 : LOWER_CALL(
				   MPI_Imrecv_c, (void *, int64_t, int, int32_t *, int32_t *))(
				   m->bytes, size, BYTE, &real, &m->request);
	if (failed) {
		queue_give_back(m);
		return 0;
	}
	message_received(comm->count, r->world);
	while (*at)
		at = &(*at)->next;
	*at = m;
	mpi_messages.queued++;
	return 1;
}

/* The same elements as were packed; no handler is called. */
static int unpack(const struct mpi_request *r, const char *from, int64_t size, int64_t count)
{
	int comm = mpi_state.partitions->real, type = real_handle(r->datatype), small = 0;
	int64_t at = 0;
	int e = LOWER_CALL(
		MPI_Unpack_c, (const void *, int64_t, int64_t *, void *, int64_t, int, int))(
		from, size, &at, r->buffer, count, type, comm);

	if (e != MPI_ERR_UNSUPPORTED_OPERATION || size > INT_MAX || count > INT_MAX)
		return e;
	return LOWER_CALL(MPI_Unpack, (const void *, int, int *, void *, int, int, int))(
		from, (int)size, &small, r->buffer, (int)count, type, comm);
}

static void deliver(struct mpi_request *r, struct mpi_message *m)
{
	int64_t size = m->size - sizeof(struct part_header);
	int64_t room = r->parts * r->part_size,
		element = r->count ? r->part_size / r->count : 0;
	int64_t used = size < room ? size : room;
	int error = 0;

	if (element)
		error = unpack(r, m->bytes + sizeof(struct part_header), used, used / element);
	r->error = error ? error : size > room ? MPI_ERR_TRUNCATE : 0;
	hold(r, r->peer, r->tag, used);
	queue_give_back(m);
}

static void look_for_message(struct mpi_request *r)
{
	struct mpi_object *comm = mpi_state.partitions;
	struct mpi_message *m;

	messages_lock();
	while (!(m = take_message(comm->count, r)) && begin_message(comm, r))
		;
	messages_unlock();
	if (m)
		deliver(r, m);
}

static void look_at_send(struct mpi_request *r)
{
	if (__atomic_load_n(&r->sent, __ATOMIC_ACQUIRE) &&
		(r->in->under_way <= 1 || buffered_under_way(r->in) <= 1))
		hold(r, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

STUB_HIDDEN int partitioned_is_withheld(struct mpi_request *r)
{
	static uint32_t looking;

	/* Another thread may look at the same one. */
	if (__atomic_exchange_n(&looking, 1, __ATOMIC_ACQUIRE))
		return !r->held;
	if (!r->held && r->kind == MPI_PARTITIONED_SEND)
		look_at_send(r);
	else if (!r->held)
		look_for_message(r);
	__atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
	return !r->held;
}

static int step_arrived(struct message_call *c)
{
	struct mpi_request *r = c->requests[0];

	*c->flag = !r->active || r->held || !partitioned_is_withheld(r);
	if (!*c->flag) {
		mpi_messages.poll_call = c->index;
		mpi_messages.polls++;
	}
	return STEP_DONE;
}

OPEN(MPI_Parrived, (int request, int part, int *flag))
{
	struct mpi_request *r = request_of(request);
	struct message_call c;

	if (!is_partitioned(r, MPI_PARTITIONED_RECEIVE))
		return real_MPI_Parrived(real_request(request), part, flag);
	if (part < 0 || part >= r->parts)
		return failed(r, MPI_ERR_ARG);
	message_call_about(&c, step_arrived, INDEX_MPI_Parrived, NULL, 0, BYTE, r->peer, r->tag,
		COMM_WORLD);
	c.requests[0] = r;
	c.flag = flag;
	return message_once(&c);
}
