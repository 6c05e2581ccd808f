/*
 * messages_sendrecv.c - calls that send a message and receive another one: both are under way at the same time.
 */
#include <stdlib.h>

#include "stubs/mpi/messages.h"

#include "mpi.index.h"

/* Both have a record. 0: there is no room. */
static int take_both(struct mpi_request **in, struct mpi_request **out)
{
	*in = request_take();
	*out = *in ? request_take() : NULL;
	if (*in && !*out)
		request_untake(*in);
	return *out != NULL;
}

static int fail_call(
	struct message_call *c, int error, struct mpi_request *in, struct mpi_request *out)
{
	c->result = error;
	request_untake(in);
	request_untake(out);
	return -1;
}

/* The receive cannot be left behind, as the send has failed. */
static void withdraw_receive(struct message_call *c)
{
	struct mpi_request *r = c->requests[0];

	r->cancelled = 1; /* or it would count as a message that has come */
	LOWER_CALL(MPI_Cancel, (int32_t *))(&r->real);
	while (c->requests[0])
		message_look(c, 0, STEP_LOOKS);
}

/*
 * Begin both: @c is the receive, c->other the send. *@m: the message that was received for a checkpoint, and is to be
 * delivered; NULL: the receive is under way. 0; or the call has failed as c->result says, and is done.
 */
static int begin_both(struct message_call *c, struct mpi_request *in, struct mpi_request *out,
	struct mpi_message **m)
{
	int32_t real;
	int error;

	*m = queue_match(message_counts(c), c->peer, c->tag, 1);
	if (!*m) {
		error = message_begin_receive(c, &real);
		if (error)
			return fail_call(c, error, in, out);
		message_under_way(c, in, MPI_RECEIVE, real);
	}
	error = message_begin_send(c->other, &real);
	if (error && *m) {
		queue_put_back(message_counts(c), *m);
		return fail_call(c, error, in, out);
	}
	if (error) {
		request_untake(out);
		withdraw_receive(c);
		c->result = error;
		return -1;
	}
	message_sent(message_counts(c->other), c->other->peer);
	message_under_way(c->other, out, MPI_SEND, real);
	return 0;
}

static int step_sendrecv(struct message_call *c)
{
	struct mpi_request *in, *out;
	struct mpi_message *m;

	if (!take_both(&in, &out))
		return STEP_ROOM;
	if (begin_both(c, in, out, &m))
		return STEP_DONE;
	if (m) {
		message_deliver(c, m);
		request_untake(in);
	}
	c->requests[1] = c->other->requests[1];
	c->step = step_look;
	return step_look(c);
}

/* One request for both, of the receive; it is complete when the send is, too. */
static int step_isendrecv(struct message_call *c)
{
	struct mpi_request *in, *out;
	struct mpi_message *m;

	if (!take_both(&in, &out))
		return STEP_ROOM;
	if (begin_both(c, in, out, &m))
		return STEP_DONE;
	if (m) {
		request_receive_message(in, c, m);
		message_under_way(c, in, MPI_RECEIVE, MPI_REQUEST_NULL);
	}
	in->pair = out;
	*c->handle = in->handle;
	return STEP_DONE;
}

/* ---- what programs call ---- */

static struct message_call message_of(
	unsigned index, void *buffer, int64_t count, int type, int peer, int tag, int comm)
{
	return (struct message_call){.index = index,
		.buffer = buffer,
		.count = count,
		.datatype = type,
		.peer = peer,
		.tag = tag,
		.comm = comm,
		.status = STATUS_IGNORE};
}

static int wait_sendrecv(struct message_call *in, struct message_call *out, int *status)
{
	in->step = step_sendrecv;
	in->other = out;
	in->status = status;
	return message_wait(in);
}

static int begin_isendrecv(struct message_call *in, struct message_call *out, int *request)
{
	in->step = step_isendrecv;
	in->other = out;
	in->handle = request;
	return message_once(in);
}

/* With counts of @type; @call is handed the last parameter, a status or a request. */
#define SENDRECV(name, type, call)                                                             \
	OPEN(name, (const void *out, type out_count, int out_type, int to, int out_tag,        \
			   void *in, type in_count, int in_type, int from, int in_tag,         \
			   int comm, int *last))                                               \
	{                                                                                      \
		struct message_call receive =                                                  \
			message_of(INDEX_##name, in, in_count, in_type, from, in_tag, comm);   \
		struct message_call send = message_of(                                         \
			INDEX_##name, (void *)out, out_count, out_type, to, out_tag, comm);    \
                                                                                               \
		return call(&receive, &send, last);                                            \
	}
SENDRECV(MPI_Sendrecv, int, wait_sendrecv)
SENDRECV(MPI_Sendrecv_c, int64_t, wait_sendrecv)
SENDRECV(MPI_Isendrecv, int, begin_isendrecv)
SENDRECV(MPI_Isendrecv_c, int64_t, begin_isendrecv)

/* ---- what is sent is replaced by what is received ---- */

extern STUB_HIDDEN int real_MPI_Pack_size(int count, int type, int comm, int *size),
	real_MPI_Pack(
		const void *in, int count, int type, void *out, int size, int *at, int comm),
	real_MPI_Pack_size_c(int64_t count, int type, int comm, int64_t *size),
	real_MPI_Pack_c(const void *in, int64_t count, int type, void *out, int64_t size,
		int64_t *at, int comm);

static int sendrecv_replace(struct message_call *in, struct message_call *out, void *packed,
	int64_t size, int *status)
{
	int r;

	out->buffer = packed;
	out->count = size;
	out->datatype = PACKED;
	r = wait_sendrecv(in, out, status);
	free(packed);
	return r;
}

OPEN(MPI_Sendrecv_replace, (void *buffer, int count, int type, int to, int out_tag, int from,
				   int in_tag, int comm, int *status))
{
	struct message_call in =
		message_of(INDEX_MPI_Sendrecv_replace, buffer, count, type, from, in_tag, comm);
	struct message_call out =
		message_of(INDEX_MPI_Sendrecv_replace, NULL, 0, 0, to, out_tag, comm);
	int size = 0, at = 0, r = 0;
	void *packed = NULL;

	if (to != MPI_PROC_NULL) {
		r = real_MPI_Pack_size(count, type, comm, &size);
		if (r)
			return r;
		packed = malloc(size + 1);
		r = packed ? real_MPI_Pack(buffer, count, type, packed, size, &at, comm)
			   : MPI_ERR_OTHER;
	}
	if (!r)
		return sendrecv_replace(&in, &out, packed, at, status);
	free(packed);
	return r;
}

OPEN(MPI_Sendrecv_replace_c, (void *buffer, int64_t count, int type, int to, int out_tag,
				     int from, int in_tag, int comm, int *status))
{
	struct message_call in = message_of(
		INDEX_MPI_Sendrecv_replace_c, buffer, count, type, from, in_tag, comm);
	struct message_call out =
		message_of(INDEX_MPI_Sendrecv_replace_c, NULL, 0, 0, to, out_tag, comm);
	int64_t size = 0, at = 0;
	void *packed = NULL;
	int r = 0;

	if (to != MPI_PROC_NULL) {
		r = real_MPI_Pack_size_c(count, type, comm, &size);
		if (r)
			return r;
		packed = malloc(size + 1);
		r = packed ? real_MPI_Pack_c(buffer, count, type, packed, size, &at, comm)
			   : MPI_ERR_OTHER;
	}
	if (!r)
		return sendrecv_replace(&in, &out, packed, at, status);
	free(packed);
	return r;
}

/* What is sent lies in memory that goes with the send. */
static int isendrecv_replace(struct message_call *in, struct message_call *out, int *request)
{
	int64_t size = 0, at = 0;
	struct mpi_message *packed;
	int r;

	if (out->peer == MPI_PROC_NULL)
		return begin_isendrecv(in, out, request);
	r = real_MPI_Pack_size_c(in->count, in->datatype, in->comm, &size);
	if (r)
		return r;
	packed = queue_memory(size);
	if (!packed)
		return MPI_ERR_OTHER;
	r = real_MPI_Pack_c(
		in->buffer, in->count, in->datatype, packed->bytes, size, &at, in->comm);
	out->buffer = packed->bytes;
	out->count = at;
	out->datatype = PACKED;
	out->packed = packed;
	if (!r)
		r = begin_isendrecv(in, out, request);
	if (r)
		queue_memory_unused(packed);
	return r;
}

OPEN(MPI_Isendrecv_replace, (void *buffer, int count, int type, int to, int out_tag, int from,
				    int in_tag, int comm, int *request))
{
	struct message_call in = message_of(
		INDEX_MPI_Isendrecv_replace, buffer, count, type, from, in_tag, comm);
	struct message_call out =
		message_of(INDEX_MPI_Isendrecv_replace, buffer, count, type, to, out_tag, comm);

	return isendrecv_replace(&in, &out, request);
}

OPEN(MPI_Isendrecv_replace_c, (void *buffer, int64_t count, int type, int to, int out_tag,
				      int from, int in_tag, int comm, int *request))
{
	struct message_call in = message_of(
		INDEX_MPI_Isendrecv_replace_c, buffer, count, type, from, in_tag, comm);
	struct message_call out = message_of(
		INDEX_MPI_Isendrecv_replace_c, buffer, count, type, to, out_tag, comm);

	return isendrecv_replace(&in, &out, request);
}
