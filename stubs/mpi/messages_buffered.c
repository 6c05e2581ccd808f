/*
 * messages_buffered.c - a buffered send is the send of a copy, which lies in memory of ours until the message has been asked for. The
 * library is given no buffer: its MPI_Buffer_detach would wait in the lower half, where no thread can be stopped. How much may be
 * under way the program's buffer says.
 */
#include <limits.h>

#include "stubs/mpi/messages_buffered.h"

#include "mpi.index.h"

enum { MPI_ERR_BUFFER = 1 };

extern STUB_HIDDEN int real_MPI_Pack_size(int count, int type, int comm, int *size),
	real_MPI_Pack(
		const void *in, int count, int type, void *out, int size, int *at, int comm),
	real_MPI_Pack_size_c(int64_t count, int type, int comm, int64_t *size),
	real_MPI_Pack_c(const void *in, int64_t count, int type, void *out, int64_t size,
		int64_t *at, int comm),
	real_MPI_Comm_call_errhandler(MPI_Comm comm, int error),
	real_MPI_Buffer_attach(void *buffer, int size),
	real_MPI_Buffer_detach(void *buffer, int *size),
	real_MPI_Buffer_attach_c(void *buffer, MPI_Count size),
	real_MPI_Buffer_detach_c(void *buffer, MPI_Count *size), real_MPI_Buffer_flush(void);

/* ---- what is under way ---- */

static struct mpi_request *sends; /* by `next` */
static int64_t taken;             /* of the program's buffer, by them: bytes */
static uint32_t lock;

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

/* In a step. 1: some are left. */
static int look_at_sends(void)
{
	struct mpi_request **at = &sends, *r;

	raw_lock(&lock);
	while ((r = *at)) {
		if (!is_sent(r)) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		taken -= space_for(r->count);
		count_up(&mpi_messages.steps);
		request_give_back(r);
	}
	raw_unlock(&lock);
	return sends != NULL;
}

static int try_to_reserve(int64_t space)
{
	int r;

	raw_lock(&lock);
	r = space <= mpi_state.buffer_size - taken;
	if (r)
		taken += space;
	raw_unlock(&lock);
	return r;
}

static int reserve(int64_t space)
{
	if (try_to_reserve(space))
		return 1;
	look_at_sends();
	return try_to_reserve(space);
}

static void unreserve(int64_t space)
{
	raw_lock(&lock);
	taken -= space;
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
	raw_lock(&lock);
	r->next = sends;
	sends = r;
	raw_unlock(&lock);
}

/* In a step: send the copy, which stays c->packed if it is of no use any more. @r is a free record. */
static void begin(struct message_call *c, struct mpi_request *r)
{
	int64_t space = space_for(c->count);
	int32_t real, status[MPI_STATUS_INTS];
	int flag = 0, has_room = reserve(space);

	c->result = has_room ? message_begin_send(c, &real)
			     : message_failed(c->comm, MPI_ERR_BUFFER);
	if (c->result) {
		request_untake(r);
		if (has_room)
			unreserve(space);
		return;
	}
	message_sent(message_counts(c), c->peer);
	LOWER_CALL(MPI_Test, (int32_t *, int *, int32_t *))(&real, &flag, status);
	if (!flag) {
		leave_under_way(c, r, real);
		return;
	}
	request_untake(r);
	unreserve(space);
}

static int step_bsend(struct message_call *c)
{
	struct mpi_request *r = request_take();

	if (!r)
		return STEP_ROOM;
	begin(c, r);
	return STEP_DONE;
}

/* What the program is to complete is complete. */
static void hold(struct mpi_request *r)
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
	begin(c, r);
	if (c->result) {
		request_untake(own);
		return STEP_DONE;
	}
	request_describe(own, c);
	own->packed = NULL;
	own->kind = MPI_SEND;
	own->real = MPI_REQUEST_NULL;
	hold(own);
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
	begin(c, r);
	if (!c->result)
		hold(own);
	return STEP_DONE;
}

/* ---- in front of the crossing ---- */

/* One that has a buffer of its own (MPI 4.1) is the library's to serve. */
static int is_ours(const struct message_call *c)
{
	const struct mpi_object *comm = comm_object(c->comm);

	return mpi_state.buffer && c->peer != MPI_PROC_NULL && (!comm || !comm->buffered);
}

static int size_of(const struct message_call *c, int64_t *size)
{
	int small = 0, r;

	if (c->count > INT_MAX)
		return real_MPI_Pack_size_c(c->count, c->datatype, c->comm, size);
	r = real_MPI_Pack_size((int)c->count, c->datatype, c->comm, &small);
	*size = small;
	return r;
}

static int pack(const struct message_call *c, void *to, int64_t size, int64_t *at)
{
	int small = 0, r;

	if (c->count > INT_MAX)
		return real_MPI_Pack_c(c->buffer, c->count, c->datatype, to, size, at, c->comm);
	r = real_MPI_Pack(
		c->buffer, (int)c->count, c->datatype, to, (int)size, &small, c->comm);
	*at = small;
	return r;
}

/* Make the message of @c a copy of what it was. */
static int copy(struct message_call *c)
{
	int64_t size = 0, at = 0;
	int r = size_of(c, &size);

	if (r)
		return r;
	c->packed = queue_memory(size);
	if (!c->packed)
		return message_failed(c->comm, MPI_ERR_OTHER);
	r = pack(c, c->packed->bytes, size, &at);
	c->buffer = c->packed->bytes;
	c->count = at;
	c->datatype = PACKED;
	c->mode = MPI_STANDARD;
	return r;
}

static int send_copy(struct message_call *c, int (*step)(struct message_call *))
{
	int r = copy(c);

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
	return send_copy(c, c->handle ? step_ibsend : step_bsend);
}

STUB_HIDDEN int request_start_buffered(const struct mpi_request *r, struct message_call *c)
{
	struct message_call message;

	if (r->kind != MPI_SEND || r->mode != MPI_BUFFERED || !r->persistent)
		return -1;
	message_call_about(&message, NULL, c->index, r->buffer, r->count, r->datatype, r->peer,
		r->tag, r->comm);
	message.handle = c->handle;
	return is_ours(&message) ? send_copy(&message, step_start) : -1;
}

/* ---- the program's buffer ---- */

static int step_await_sends(struct message_call *c)
{
	return look_at_sends() ? STEP_AGAIN : STEP_DONE;
}

STUB_HIDDEN void buffered_await(unsigned index)
{
	struct message_call c;

	if (!sends)
		return;
	message_call_completes(&c, step_await_sends, index, NULL, NULL, STATUS_IGNORE);
	(void)message_wait(&c);
}

/* The library has looked at the arguments, and has no buffer any more. */
static int attached(int result, void *buffer, int64_t size)
{
	if (result)
		return result;
	mpi_state.buffer = buffer;
	/* MPI_BUFFER_AUTOMATIC is no address. */
	mpi_state.buffer_size = (intptr_t)buffer < 0 ? LONG_MAX : size;
	return 0;
}

static int has_one_already(void)
{
	real_MPI_Comm_call_errhandler(COMM_WORLD, MPI_ERR_BUFFER);
	return MPI_ERR_BUFFER;
}

BY_HAND(MPI_Buffer_attach, (void *buffer, int size));
int body_MPI_Buffer_attach(void *buffer, int size)
{
	int r = mpi_state.buffer ? has_one_already() : real_MPI_Buffer_attach(buffer, size);
	void *was;
	int its;

	return attached(r ? r : real_MPI_Buffer_detach(&was, &its), buffer, size);
}

BY_HAND(MPI_Buffer_attach_c, (void *buffer, MPI_Count size));
int body_MPI_Buffer_attach_c(void *buffer, MPI_Count size)
{
	int r = mpi_state.buffer ? has_one_already() : real_MPI_Buffer_attach_c(buffer, size);
	MPI_Count its;
	void *was;

	return attached(r ? r : real_MPI_Buffer_detach_c(&was, &its), buffer, size);
}

static int64_t detach(unsigned index, void **buffer)
{
	buffered_await(index);
	*buffer = mpi_state.buffer;
	mpi_state.buffer = NULL;
	return mpi_state.buffer_size == LONG_MAX ? 0 : mpi_state.buffer_size;
}

OPEN(MPI_Buffer_detach, (void *buffer, int *size))
{
	if (!mpi_state.buffer)
		return real_MPI_Buffer_detach(buffer, size);
	*size = (int)detach(INDEX_MPI_Buffer_detach, buffer);
	return 0;
}

OPEN(MPI_Buffer_detach_c, (void *buffer, MPI_Count *size))
{
	if (!mpi_state.buffer)
		return real_MPI_Buffer_detach_c(buffer, size);
	*size = detach(INDEX_MPI_Buffer_detach_c, buffer);
	return 0;
}

OPEN(MPI_Buffer_flush, (void))
{
	if (!mpi_state.buffer)
		return real_MPI_Buffer_flush();
	buffered_await(INDEX_MPI_Buffer_flush);
	return 0;
}

/* ---- buffers of communicators ---- */

static int buffered(int result, MPI_Comm comm, int is)
{
	struct mpi_object *o = comm_object(comm);

	if (!result && o)
		o->buffered = is;
	return result;
}

BY_HAND(MPI_Comm_attach_buffer, (MPI_Comm comm, void *buffer, int size));
int body_MPI_Comm_attach_buffer(MPI_Comm comm, void *buffer, int size)
{
	return buffered(real_MPI_Comm_attach_buffer(comm, buffer, size), comm, 1);
}

BY_HAND(MPI_Comm_attach_buffer_c, (MPI_Comm comm, void *buffer, MPI_Count size));
int body_MPI_Comm_attach_buffer_c(MPI_Comm comm, void *buffer, MPI_Count size)
{
	return buffered(real_MPI_Comm_attach_buffer_c(comm, buffer, size), comm, 1);
}

BY_HAND(MPI_Comm_detach_buffer, (MPI_Comm comm, void *buffer, int *size));
int body_MPI_Comm_detach_buffer(MPI_Comm comm, void *buffer, int *size)
{
	return buffered(real_MPI_Comm_detach_buffer(comm, buffer, size), comm, 0);
}

BY_HAND(MPI_Comm_detach_buffer_c, (MPI_Comm comm, void *buffer, MPI_Count *size));
int body_MPI_Comm_detach_buffer_c(MPI_Comm comm, void *buffer, MPI_Count *size)
{
	return buffered(real_MPI_Comm_detach_buffer_c(comm, buffer, size), comm, 0);
}
