/*
 * messages_buffered.c - a buffered send is the send of a copy, which lies in memory of ours until the message has been asked for. The
 * library is given no buffer: its MPI_Buffer_detach would wait in the lower half, where no thread can be stopped. How much may be
 * under way the program's buffer says: that of the communicator, else of its session, else of the process (buffers.c).
 */
#include <limits.h>

#include "stubs/mpi/messages_buffered.h"

#include "mpi.index.h"

extern STUB_HIDDEN int real_MPI_Pack_size(int count, int type, int comm, int *size),
	real_MPI_Pack(
		const void *in, int count, int type, void *out, int size, int *at, int comm),
	real_MPI_Pack_size_c(int64_t count, int type, int comm, int64_t *size),
	real_MPI_Pack_c(const void *in, int64_t count, int type, void *out, int64_t size,
		int64_t *at, int comm),
	real_MPI_Comm_call_errhandler(MPI_Comm comm, int error);

/* ---- what is under way ---- */

static struct mpi_request *sends, **sends_end = &sends; /* in all buffers, by `next` */
static struct mpi_buffer *unused;
static uint32_t lock; /* of these, and of what is taken of buffers */

/* No more than a program provides that goes by MPI_BSEND_OVERHEAD: 96 of MPICH's ABI, 128 of Open MPI's. */
static int64_t space_for(int64_t bytes)
{
	return bytes + 96;
}

/* An error of what the program has sent already nobody hears. */
static int is_sent(const struct mpi_request *r)
{
	int32_t real = r->real, status[MPI_STATUS_INTS];
	int flag = 0;

	return r->held ||
	       LOWER_CALL(MPI_Test, (int32_t *, int *, int32_t *))(&real, &flag, status) ||
	       flag;
}

static void append(struct mpi_request *r)
{
	r->next = NULL;
	*sends_end = r;
	sends_end = &r->next;
}

/* Under the lock: the send at *@at is taken out. */
static struct mpi_request *take_out(struct mpi_request **at)
{
	struct mpi_request *r = *at;

	*at = r->next;
	if (sends_end == &r->next)
		sends_end = at;
	return r;
}

static void reuse_if_ended(struct mpi_buffer *b)
{
	if (!b->ended || b->under_way)
		return;
	b->next = unused;
	unused = b;
}

/* Under the lock. */
static void sent(struct mpi_request *r)
{
	r->in->taken -= space_for(r->count);
	r->in->under_way--;
	reuse_if_ended(r->in);
	count_up(&mpi_messages.steps);
	request_give_back(r);
}

/* In a step. */
static void look_at_sends(void)
{
	raw_lock(&lock);
	for (struct mpi_request **at = &sends; *at;)
		if (is_sent(*at))
			sent(take_out(at));
		else
			at = &(*at)->next;
	raw_unlock(&lock);
}

/* In a step: at some of them, each in its turn. There are never more copies than are under way, and a few of the last sends', as each send looks
 * at two. */
static void look_at_some(void)
{
	raw_lock(&lock);
	for (int i = 0; i < 2 && sends; i++) {
		struct mpi_request *r = take_out(&sends);

		if (is_sent(r))
			sent(r);
		else
			append(r);
	}
	raw_unlock(&lock);
}

static int try_to_reserve(struct mpi_buffer *b, int64_t space)
{
	int r;

	raw_lock(&lock);
	r = space <= b->size - b->taken;
	if (r)
		b->taken += space;
	raw_unlock(&lock);
	return r;
}

static int reserve_space(struct mpi_buffer *b, int64_t space)
{
	look_at_some();
	if (try_to_reserve(b, space))
		return 1;
	look_at_sends();
	return try_to_reserve(b, space);
}

static void release_space(struct mpi_buffer *b, int64_t space)
{
	raw_lock(&lock);
	b->taken -= space;
	raw_unlock(&lock);
}

/* ---- one is begun ---- */

static void leave_under_way(struct message_call *c, struct mpi_request *r, int32_t real)
{
	request_describe(r, c);
	r->kind = MPI_SEND;
	r->real = real;
	request_posted(r);
	c->packed = NULL; /* it is the request's now */
	r->in = c->in;
	raw_lock(&lock);
	r->in->under_way++;
	append(r);
	raw_unlock(&lock);
}

/* In a step: send the copy, which stays c->packed if it is of no use any more. @r is a free record. */
static void begin_buffered(struct message_call *c, struct mpi_request *r)
{
	int64_t space = space_for(c->count);
	int32_t real, status[MPI_STATUS_INTS];
	int flag = 0, has_room = reserve_space(c->in, space);

	c->result = has_room ? message_begin_send(c, &real)
			     : message_failed(c->comm, MPI_ERR_BUFFER);
	if (c->result) {
		request_untake(r);
		if (has_room)
			release_space(c->in, space);
		return;
	}
	message_sent(message_counts(c), c->peer);
	LOWER_CALL(MPI_Test, (int32_t *, int *, int32_t *))(&real, &flag, status);
	if (!flag) {
		leave_under_way(c, r, real);
		return;
	}
	request_untake(r);
	release_space(c->in, space);
}

STUB_HIDDEN int buffered_send(struct message_call *c)
{
	struct mpi_request *r = request_take();

	if (!r)
		return STEP_ROOM;
	begin_buffered(c, r);
	return STEP_DONE;
}

/* What the program is to complete is complete. */
static void hold_request(struct mpi_request *r)
{
	r->held = 1;
	r->error = 0;
	raw_zero(r->status, sizeof(r->status));
	r->status[MPI_STATUS_SOURCE] = MPI_PROC_NULL;
	r->status[MPI_STATUS_TAG] = MPI_ANY_TAG;
	request_posted(r);
}

static int step_ibsend(struct message_call *c)
{
	struct mpi_request *own = request_take(), *r = own ? request_take() : NULL;

	if (!r) {
		if (own)
			request_untake(own);
		return STEP_ROOM;
	}
	begin_buffered(c, r);
	if (c->result) {
		request_untake(own);
		return STEP_DONE;
	}
	request_describe(own, c);
	own->packed = NULL;
	own->kind = MPI_SEND;
	own->real = MPI_REQUEST_NULL;
	hold_request(own);
	*c->handle = own->handle;
	return STEP_DONE;
}

static int step_start(struct message_call *c)
{
	struct mpi_request *own = request_of(*c->handle), *r;

	if (own->active) {
		c->result = message_failed(c->comm, MPI_ERR_REQUEST);
		return STEP_DONE;
	}
	r = request_take();
	if (!r)
		return STEP_ROOM;
	begin_buffered(c, r);
	if (!c->result)
		hold_request(own);
	return STEP_DONE;
}

/* ---- in front of the crossing ---- */

/* Without a buffer it is the library's, to report the mistake. */
static int is_ours(struct message_call *c)
{
	c->in = buffer_for(comm_object(c->comm));
	return c->in && c->peer != MPI_PROC_NULL;
}

/* Bytes may be too many for an int where elements are not. Libraries before MPI 4.0 have no functions for large counts. */
static int size_of(const struct message_call *c, int64_t *size)
{
	int r = real_MPI_Pack_size_c(c->count, c->datatype, c->comm, size), small = 0;

	if (r != MPI_ERR_UNSUPPORTED_OPERATION || c->count > INT_MAX)
		return r;
	r = real_MPI_Pack_size((int)c->count, c->datatype, c->comm, &small);
	*size = small;
	return r;
}

STUB_HIDDEN int buffered_pack(const void *from, int64_t count, int type, void *to, int64_t size,
	int64_t *packed, int comm)
{
	int r, small = 0;

	*packed = 0;
	r = real_MPI_Pack_c(from, count, type, to, size, packed, comm);
	if (r != MPI_ERR_UNSUPPORTED_OPERATION || count > INT_MAX || size > INT_MAX)
		return r;
	r = real_MPI_Pack(from, (int)count, type, to, (int)size, &small, comm);
	*packed = small;
	return r;
}

static int failed(const struct message_call *c, int error)
{
	if (comm_object(c->comm))
		(void)real_MPI_Comm_call_errhandler(c->comm, error);
	return error;
}

/* Make the message of @c a copy of what it was. */
static int copy_message(struct message_call *c)
{
	int64_t size = 0, at = 0;
	int r = size_of(c, &size);

	if (r)
		return r;
	/* It would not fit into an empty buffer. */
	if (c->in->size - size < space_for(0))
		return failed(c, MPI_ERR_BUFFER);
	c->packed = queue_memory(size);
	if (!c->packed)
		return failed(c, MPI_ERR_OTHER);
	r = buffered_pack(
		c->buffer, c->count, c->datatype, c->packed->bytes, size, &at, c->comm);
	c->buffer = c->packed->bytes;
	c->count = at;
	c->datatype = PACKED;
	c->mode = MPI_STANDARD;
	return r;
}

static int send_copy(struct message_call *c, int (*step)(struct message_call *))
{
	int r = copy_message(c);

	c->step = step;
	if (!r)
		r = message_once(c);
	if (c->packed)
		queue_memory_unused(c->packed);
	return r;
}

STUB_HIDDEN int message_buffered(struct message_call *c)
{
	if (!is_ours(c))
		return message_once(c);
	return send_copy(c, c->handle ? step_ibsend : buffered_send);
}

/* The communicator that @r is to be sent on. The program may have freed it, and the library has it as long as it has the request; then it is given
 * the library's own handle. */
static int comm_of(const struct mpi_request *r)
{
	const struct mpi_object *o = comm_object(r->comm);

	return o && o->real == r->real_comm && o->count == r->counts &&
			       (!r->counts || r->counts->number == r->number)
		       ? r->comm
		       : r->real_comm;
}

STUB_HIDDEN int request_start_buffered(const struct mpi_request *r, struct message_call *c)
{
	struct message_call message;

	if (r->kind != MPI_SEND || r->mode != MPI_BUFFERED || !r->persistent)
		return -1;
	message_call_about(&message, NULL, c->index, r->buffer, r->count, r->datatype, r->peer,
		r->tag, comm_of(r));
	message.handle = c->handle;
	return is_ours(&message) ? send_copy(&message, step_start) : -1;
}

/* ---- waited for, and given back ---- */

static int is_empty(const struct mpi_buffer *b)
{
	return b ? !b->under_way : !sends;
}

static int step_await_sends(struct message_call *c)
{
	look_at_sends();
	return is_empty(c->in) ? STEP_DONE : STEP_AGAIN;
}

STUB_HIDDEN void buffered_await(unsigned index, struct mpi_buffer *b)
{
	struct message_call c;

	if (is_empty(b))
		return;
	message_call_completes(&c, step_await_sends, index, NULL, NULL, STATUS_IGNORE);
	c.in = b;
	(void)message_wait(&c);
}

STUB_HIDDEN int buffered_before(const struct mpi_buffer *b, uint64_t posted)
{
	int r = 0;

	look_at_sends();
	raw_lock(&lock);
	for (const struct mpi_request *s = sends; s && !r; s = s->next)
		r = s->in == b && s->posted < posted;
	raw_unlock(&lock);
	return r;
}

STUB_HIDDEN uint32_t buffered_under_way(const struct mpi_buffer *b)
{
	look_at_sends();
	return b->under_way;
}

STUB_HIDDEN struct mpi_buffer *buffer_new(void)
{
	struct mpi_buffer *b;

	raw_lock(&lock);
	b = unused;
	if (b)
		unused = b->next;
	raw_unlock(&lock);
	if (!b)
		b = records_alloc(sizeof(*b));
	if (b)
		raw_zero(b, sizeof(*b));
	return b;
}

STUB_HIDDEN void buffer_end(struct mpi_buffer *b)
{
	raw_lock(&lock);
	b->ended = 1;
	reuse_if_ended(b);
	raw_unlock(&lock);
}
