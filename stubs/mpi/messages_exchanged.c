/*
 * messages_exchanged.c - calls that send a message and receive another one: both are under way at the same time.
 */
#include <stdlib.h>

#include "stubs/mpi/messages.h"

#include "mpi.index.h"

/* The receive cannot be left behind, as the send has failed. */
static int withdraw_receive(struct message_call *c)
{
	struct mpi_request *r = c->requests[0];
	int error = c->result;

	if (!r)
		return STEP_DONE;
	if (!r->held) {
		r->cancelled = 1; /* or it would count as a message that has come */
		BELOW(MPI_Cancel, (int32_t *))(&r->real);
	}
	while (c->requests[0])
		message_look(c, 0, STEP_LOOKS);
	c->result = error;
	return STEP_DONE;
}

/* @c is the receive, c->other the send. */
static int step_sendrecv(struct message_call *c)
{
	struct mpi_request *in = request_take(), *out = in ? request_take() : NULL;
	int32_t real;
	int sent;

	if (!out) {
		if (in)
			request_untake(in);
		return STEP_ROOM;
	}
	if (mpi_messages.queued && message_deliver_queued(c)) {
		request_untake(in);
	} else {
		c->result = message_begin_receive(c, &real);
		if (c->result) {
			request_untake(in);
			request_untake(out);
			return STEP_DONE;
		}
		message_under_way(c, in, MPI_RECEIVE, real);
	}
	sent = message_begin_send(c->other, &real);
	if (sent) {
		request_untake(out);
		c->result = sent;
		return withdraw_receive(c);
	}
	message_sent(message_counts(c->other), c->other->peer);
	message_under_way(c->other, out, MPI_SEND, real);
	c->requests[1] = c->other->requests[1];
	c->step = step_look;
	return step_look(c);
}

/* ---- what programs call ---- */

static struct message_call one(
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

static int sendrecv(struct message_call *in, struct message_call *out, int *status)
{
	in->step = step_sendrecv;
	in->other = out;
	in->status = status;
	return message_wait(in);
}

OPEN(MPI_Sendrecv,
	(const void *out, int out_count, int out_type, int to, int out_tag, void *in,
		int in_count, int in_type, int from, int in_tag, int comm, int *status))
{
	struct message_call receive =
		one(INDEX_MPI_Sendrecv, in, in_count, in_type, from, in_tag, comm);
	struct message_call send =
		one(INDEX_MPI_Sendrecv, (void *)out, out_count, out_type, to, out_tag, comm);

	return sendrecv(&receive, &send, status);
}

OPEN(MPI_Sendrecv_c,
	(const void *out, int64_t out_count, int out_type, int to, int out_tag, void *in,
		int64_t in_count, int in_type, int from, int in_tag, int comm, int *status))
{
	struct message_call receive =
		one(INDEX_MPI_Sendrecv_c, in, in_count, in_type, from, in_tag, comm);
	struct message_call send =
		one(INDEX_MPI_Sendrecv_c, (void *)out, out_count, out_type, to, out_tag, comm);

	return sendrecv(&receive, &send, status);
}

/* ---- what is sent is replaced by what is received ---- */

extern STUB_HIDDEN int real_MPI_Pack_size(int count, int type, int comm, int *size),
	real_MPI_Pack(
		const void *in, int count, int type, void *out, int size, int *at, int comm),
	real_MPI_Pack_size_c(int64_t count, int type, int comm, int64_t *size),
	real_MPI_Pack_c(const void *in, int64_t count, int type, void *out, int64_t size,
		int64_t *at, int comm);

static int replace(struct message_call *in, struct message_call *out, void *packed,
	int64_t size, int *status)
{
	int r;

	out->buffer = packed;
	out->count = size;
	out->datatype = PACKED;
	r = sendrecv(in, out, status);
	free(packed);
	return r;
}

OPEN(MPI_Sendrecv_replace, (void *buffer, int count, int type, int to, int out_tag, int from,
				   int in_tag, int comm, int *status))
{
	struct message_call in =
		one(INDEX_MPI_Sendrecv_replace, buffer, count, type, from, in_tag, comm);
	struct message_call out =
		one(INDEX_MPI_Sendrecv_replace, NULL, 0, 0, to, out_tag, comm);
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
		return replace(&in, &out, packed, at, status);
	free(packed);
	return r;
}

OPEN(MPI_Sendrecv_replace_c, (void *buffer, int64_t count, int type, int to, int out_tag,
				     int from, int in_tag, int comm, int *status))
{
	struct message_call in =
		one(INDEX_MPI_Sendrecv_replace_c, buffer, count, type, from, in_tag, comm);
	struct message_call out =
		one(INDEX_MPI_Sendrecv_replace_c, NULL, 0, 0, to, out_tag, comm);
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
		return replace(&in, &out, packed, at, status);
	free(packed);
	return r;
}
