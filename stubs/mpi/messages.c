/*
 * messages.c - sends and receives, begun and blocking: the latter begin the message and look whether it is complete
 * (requests.h).
 */
#include "stubs/mpi/messages.h"

#include "stubs/mpi/messages_buffered.h"

#include "mpi.index.h"

typedef int isend(const void *, int, int, int, int, int, int32_t *);
typedef int isend_large(const void *, int64_t, int, int, int, int, int32_t *);
typedef int irecv(void *, int, int, int, int, int, int32_t *);
typedef int irecv_large(void *, int64_t, int, int, int, int, int32_t *);

/* ---- begun in the library ---- */

static int is_large(const struct message_call *c)
{
	return c->count > INT32_MAX;
}

STUB_HIDDEN int message_begin_send(const struct message_call *c, int32_t *real)
{
	static const unsigned functions[MPI_SEND_MODES][2] = {
		[MPI_STANDARD] = {INDEX_MPI_Isend, INDEX_MPI_Isend_c},
		[MPI_BUFFERED] = {INDEX_MPI_Ibsend, INDEX_MPI_Ibsend_c},
		[MPI_READY] = {INDEX_MPI_Irsend, INDEX_MPI_Irsend_c},
		[MPI_SYNCHRONOUS] = {INDEX_MPI_Issend, INDEX_MPI_Issend_c},
	};
	void *function = mpi_targets[functions[c->mode][is_large(c)]];
	int32_t type = real_handle(c->datatype), comm = real_handle(c->comm);
	int r;

	*real = 0;
	r = is_large(c) ? ((isend_large *)function)(
				  c->buffer, c->count, type, c->peer, c->tag, comm, real)
			: ((isend *)function)(
				  c->buffer, (int)c->count, type, c->peer, c->tag, comm, real);
	return result_of(r, *real != 0);
}

STUB_HIDDEN int message_begin_receive(const struct message_call *c, int32_t *real)
{
	int32_t type = real_handle(c->datatype), comm = real_handle(c->comm);
	int r;

	*real = 0;
	r = is_large(c) ? ((irecv_large *)mpi_targets[INDEX_MPI_Irecv_c])(
				  c->buffer, c->count, type, c->peer, c->tag, comm, real)
			: ((irecv *)mpi_targets[INDEX_MPI_Irecv])(
				  c->buffer, (int)c->count, type, c->peer, c->tag, comm, real);
	return result_of(r, *real != 0);
}

STUB_HIDDEN void message_progress(void)
{
	int flag;

	LOWER_CALL(MPI_Iprobe, (int, int, int, int *, int32_t *))
	(0, MPI_UNUSED_TAG, COMM_WORLD, &flag, STATUS_IGNORE);
}

/* ---- looks of blocking calls ---- */

/*
 * A receive that is complete at once has lost its communicator in MPICH 4.0.2: MPI_Test would call the error
 * handler of MPI_COMM_WORLD. Where handlers may differ, none is called, and the communicator's is told afterwards.
 */
static int get_handler(int32_t comm)
{
	int32_t handler = ERRORS_RETURN;

	LOWER_CALL(MPI_Comm_get_errhandler, (int, int32_t *))(comm, &handler);
	return handler;
}

static int silence_handler(int32_t comm)
{
	int32_t handler = get_handler(comm);

	LOWER_CALL(MPI_Comm_set_errhandler, (int, int32_t))(comm, ERRORS_RETURN);
	return handler;
}

static void set_handler(int32_t comm, int32_t handler)
{
	LOWER_CALL(MPI_Comm_set_errhandler, (int, int32_t))(comm, handler);
	if (mpi_is_virtual(handler) || handler < 0)
		LOWER_CALL(MPI_Errhandler_free, (int32_t *))(&handler);
}

/* The library's handle of it, beside MPI_COMM_WORLD's; 0: it is that, or has been freed. */
static int32_t other_comm(int32_t comm)
{
	return comm == COMM_WORLD || !comm_object(comm) ? 0 : real_handle(comm);
}

STUB_HIDDEN void handlers_silence(struct mpi_handlers *h, int32_t comm)
{
	h->quiet = !are_threads();
	if (!h->quiet)
		return;
	h->world = silence_handler(COMM_WORLD);
	if (other_comm(comm))
		h->comm = silence_handler(other_comm(comm));
}

STUB_HIDDEN void handlers_restore(const struct mpi_handlers *h, int32_t comm)
{
	if (!h->quiet)
		return;
	set_handler(COMM_WORLD, h->world);
	if (other_comm(comm))
		set_handler(other_comm(comm), h->comm);
}

static void begin_quiet(struct mpi_handlers *h, int32_t comm)
{
	h->quiet = 0;
	if (__builtin_expect(mpi_messages.handlers, 0) && comm != COMM_WORLD)
		handlers_silence(h, comm);
}

static int end_quiet(const struct mpi_handlers *h, int32_t comm, int error)
{
	if (!h->quiet)
		return error;
	handlers_restore(h, comm);
	return message_failed(comm, error);
}

static int test_request(int32_t *real, int *flag, int32_t *status)
{
	return LOWER_CALL(MPI_Test, (int32_t *, int *, int32_t *))(real, flag, status);
}

/* 1: it is complete, or has failed as *result says. */
static int try_to_receive(int32_t *real, int32_t comm, int32_t *status, int *result)
{
	struct mpi_handlers h;
	int flag = 0;

	begin_quiet(&h, comm);
	for (int i = 0; i < STEP_LOOKS && !flag && !*result; i++)
		*result = test_request(real, &flag, status);
	*result = end_quiet(&h, comm, *result);
	return flag || *result;
}

/* MPICH 4.0.2 gives the null process's messages the source and tag 0 when it is asked so. */
static void received_nothing(int32_t *status)
{
	status[MPI_STATUS_SOURCE] = MPI_PROC_NULL;
	status[MPI_STATUS_TAG] = MPI_ANY_TAG;
}

/* Of one of the messages of a blocking call. */
STUB_HIDDEN void message_look(struct message_call *c, int which, int looks)
{
	struct mpi_request *r = c->requests[which];
	int32_t own[MPI_STATUS_INTS] = {0}, ignored, real;
	int32_t *status = which || c->status == STATUS_IGNORE ? own : c->status;
	struct mpi_handlers h;
	int result = 0, flag = 0;

	if (r->held) {
		result = request_complete_held(r, status, &ignored);
		flag = 1;
	} else {
		begin_quiet(&h, r->comm);
		real = r->real;
		while (looks-- && !flag && !result)
			result = test_request(&real, &flag, status);
		result = end_quiet(&h, r->comm, result);
		if (flag && r->peer == MPI_PROC_NULL)
			received_nothing(status);
		if (flag || result)
			request_complete(r, real, status, &ignored);
	}
	if (flag || result)
		c->requests[which] = NULL;
	if (!c->result)
		c->result = result;
}

/* Until none is under way: of two, each in its turn. */
STUB_HIDDEN int step_look(struct message_call *c)
{
	int both = c->requests[0] && c->requests[1];

	for (int i = 0; i < (both ? STEP_LOOKS : 1); i++)
		for (int which = 0; which < 2; which++)
			if (c->requests[which])
				message_look(c, which, both ? 1 : STEP_LOOKS);
	return c->requests[0] || c->requests[1] ? STEP_AGAIN : STEP_DONE;
}

STUB_HIDDEN int message_under_way(
	struct message_call *c, struct mpi_request *r, int kind, int32_t real)
{
	request_describe(r, c);
	r->kind = kind;
	r->real = real;
	request_use_type(r);
	request_posted(r);
	c->requests[kind == MPI_SEND] = r;
	c->step = step_look;
	return STEP_AGAIN;
}

/* ---- blocking calls ---- */

static int step_send(struct message_call *c)
{
	struct mpi_request *r = request_take();
	int32_t real, status[MPI_STATUS_INTS];

	if (!r)
		return STEP_ROOM;
	c->result = message_begin_send(c, &real);
	if (!c->result) {
		message_sent(message_counts(c), c->peer);
		if (!try_to_receive(&real, c->comm, status, &c->result))
			return message_under_way(c, r, MPI_SEND, real);
	}
	request_untake(r);
	return STEP_DONE;
}

/* Of a program without a buffer, whose mistake the library reports; and of a communicator with a buffer of its own. */
static int step_bsend(struct message_call *c)
{
	int32_t type = real_handle(c->datatype), comm = real_handle(c->comm);

	c->result =
		is_large(c)
			? LOWER_CALL(MPI_Bsend_c, (const void *, int64_t, int, int, int, int))(
				  c->buffer, c->count, type, c->peer, c->tag, comm)
			: LOWER_CALL(MPI_Bsend, (const void *, int, int, int, int, int))(
				  c->buffer, (int)c->count, type, c->peer, c->tag, comm);
	if (!c->result)
		message_sent(message_counts(c), c->peer);
	return STEP_DONE;
}

STUB_HIDDEN void message_deliver(struct message_call *c, struct mpi_message *m)
{
	c->result = message_failed(c->comm, queue_deliver(m, c, c->status));
}

/* 1: the message had been received already. */
static int deliver_queued(struct message_call *c)
{
	struct mpi_message *m = queue_match(message_counts(c), c->peer, c->tag, 1);

	if (m)
		message_deliver(c, m);
	return m != NULL;
}

static int step_receive(struct message_call *c)
{
	int32_t real, own[MPI_STATUS_INTS];
	int32_t *status = c->status == STATUS_IGNORE ? own : c->status;
	struct mpi_request *r;

	if (mpi_messages.queued && deliver_queued(c))
		return STEP_DONE;
	r = request_take();
	if (!r)
		return STEP_ROOM;
	status[MPI_STATUS_SOURCE] = MPI_PROC_NULL;
	c->result = message_begin_receive(c, &real);
	if (!c->result) {
		if (!try_to_receive(&real, c->comm, status, &c->result))
			return message_under_way(c, r, MPI_RECEIVE, real);
		if (c->peer == MPI_PROC_NULL)
			received_nothing(status);
		message_received(message_counts(c), status[MPI_STATUS_SOURCE]);
	}
	request_untake(r);
	return STEP_DONE;
}

/* ---- calls that begin a message ---- */

static int step_isend(struct message_call *c)
{
	struct mpi_request *r = request_take();

	if (!r)
		return STEP_ROOM;
	c->result = message_begin_send(c, &r->real);
	if (c->result) {
		request_untake(r);
		return STEP_DONE;
	}
	message_sent(message_counts(c), c->peer);
	request_describe(r, c);
	r->kind = MPI_SEND;
	request_posted(r);
	*c->handle = r->handle;
	return STEP_DONE;
}

STUB_HIDDEN void request_receive_message(
	struct mpi_request *r, const struct message_call *c, struct mpi_message *m)
{
	r->error = queue_deliver(m, c, r->status);
	r->held = r->counted = 1;
}

STUB_HIDDEN int request_receive_queued(struct mpi_request *r, const struct message_call *c)
{
	struct mpi_message *m = queue_match(message_counts(c), c->peer, c->tag, 1);

	if (m)
		request_receive_message(r, c, m);
	return m != NULL;
}

static int step_irecv(struct message_call *c)
{
	struct mpi_request *r = request_take();

	if (!r)
		return STEP_ROOM;
	r->real = MPI_REQUEST_NULL;
	if (!mpi_messages.queued || !request_receive_queued(r, c)) {
		c->result = message_begin_receive(c, &r->real);
		if (c->result) {
			request_untake(r);
			return STEP_DONE;
		}
	}
	request_describe(r, c);
	r->kind = MPI_RECEIVE;
	request_use_type(r);
	request_posted(r);
	*c->handle = r->handle;
	return STEP_DONE;
}

/* ---- what programs call: of each function a second one, with large counts, which has another type and index,
 * hence these templates ---- */

#define SEND(name, how, the_step, run)                                                         \
	OPEN(name, (const void *buffer, int count, int type, int to, int tag, int comm))       \
	{                                                                                      \
		struct message_call c;                                                         \
                                                                                               \
		message_call_about(&c, the_step, INDEX_##name, (void *)buffer, count, type,    \
			to, tag, comm);                                                        \
		c.mode = how;                                                                  \
		return run(&c);                                                                \
	}                                                                                      \
	OPEN(name##_c,                                                                         \
		(const void *buffer, int64_t count, int type, int to, int tag, int comm))      \
	{                                                                                      \
		struct message_call c;                                                         \
                                                                                               \
		message_call_about(&c, the_step, INDEX_##name##_c, (void *)buffer, count,      \
			type, to, tag, comm);                                                  \
		c.mode = how;                                                                  \
		return run(&c);                                                                \
	}
SEND(MPI_Send, MPI_STANDARD, step_send, message_wait)
SEND(MPI_Rsend, MPI_READY, step_send, message_wait)
SEND(MPI_Ssend, MPI_SYNCHRONOUS, step_send, message_wait)
SEND(MPI_Bsend, MPI_BUFFERED, step_bsend, message_buffered)

#define BEGIN(name, constant, how, the_step, run)                                              \
	OPEN(name, (constant void *buffer, int count, int type, int peer, int tag, int comm,   \
			   int *request))                                                      \
	{                                                                                      \
		struct message_call c;                                                         \
                                                                                               \
		message_call_about(&c, the_step, INDEX_##name, (void *)buffer, count, type,    \
			peer, tag, comm);                                                      \
		c.mode = how;                                                                  \
		c.handle = request;                                                            \
		return run(&c);                                                                \
	}                                                                                      \
	OPEN(name##_c, (constant void *buffer, int64_t count, int type, int peer, int tag,     \
			       int comm, int *request))                                        \
	{                                                                                      \
		struct message_call c;                                                         \
                                                                                               \
		message_call_about(&c, the_step, INDEX_##name##_c, (void *)buffer, count,      \
			type, peer, tag, comm);                                                \
		c.mode = how;                                                                  \
		c.handle = request;                                                            \
		return run(&c);                                                                \
	}
BEGIN(MPI_Isend, const, MPI_STANDARD, step_isend, message_once)
BEGIN(MPI_Irsend, const, MPI_READY, step_isend, message_once)
BEGIN(MPI_Issend, const, MPI_SYNCHRONOUS, step_isend, message_once)
BEGIN(MPI_Ibsend, const, MPI_BUFFERED, step_isend, message_buffered)
BEGIN(MPI_Irecv, , MPI_STANDARD, step_irecv, message_once)

static int receive_blocking(unsigned index, void *buffer, int64_t count, int type, int from,
	int tag, int comm, int *status)
{
	struct message_call c;

	message_call_about(&c, step_receive, index, buffer, count, type, from, tag, comm);
	c.status = status;
	return message_wait(&c);
}

OPEN(MPI_Recv, (void *buffer, int count, int type, int from, int tag, int comm, int *status))
{
	return receive_blocking(INDEX_MPI_Recv, buffer, count, type, from, tag, comm, status);
}

OPEN(MPI_Recv_c,
	(void *buffer, int64_t count, int type, int from, int tag, int comm, int *status))
{
	return receive_blocking(INDEX_MPI_Recv_c, buffer, count, type, from, tag, comm, status);
}
