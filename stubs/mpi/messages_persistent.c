/*
 * messages_persistent.c - requests that are made once and begun again and again. At a restart they are made again
 * from their records (lower/mpi/requests_replay.c).
 */
#include "stubs/mpi/collective_gate.h"
#include "stubs/mpi/messages_buffered.h"
#include "stubs/mpi/partitioned.h"

#include "mpi.index.h"

typedef int init(void *, int, int, int, int, int, int32_t *);
typedef int init_large(void *, int64_t, int, int, int, int, int32_t *);

static int step_init(struct message_call *c)
{
	int32_t type = real_handle(c->datatype), comm = real_handle(c->comm);
	struct mpi_request *r = request_take();
	void *function = mpi_targets[c->index];

	if (!r)
		return STEP_ROOM;
	c->result = c->flag ? ((init_large *)function)(c->buffer, c->count, type, c->peer,
				      c->tag, comm, &r->real)
			    : ((init *)function)(c->buffer, (int)c->count, type, c->peer,
				      c->tag, comm, &r->real);
	if (c->result) {
		request_untake(r);
		return STEP_DONE;
	}
	request_describe(r, c);
	r->kind = c->receives ? MPI_RECEIVE : MPI_SEND;
	r->persistent = 1;
	r->real_comm = comm;
	request_use_type(r);
	*c->handle = r->handle;
	return STEP_DONE;
}

/* A template, as each function has a second one with large counts, of another type and index. */
#define INIT(name, constant, how, receiving)                                                   \
	OPEN(name, (constant void *buffer, int count, int type, int peer, int tag, int comm,   \
			   int *request))                                                      \
	{                                                                                      \
		struct message_call c = {step_init, INDEX_##name, 0, (void *)buffer, count,    \
			type, peer, tag, comm, .mode = how, .receives = receiving,             \
			.status = STATUS_IGNORE, .handle = request};                           \
                                                                                               \
		return message_once(&c);                                                       \
	}                                                                                      \
	OPEN(name##_c, (constant void *buffer, int64_t count, int type, int peer, int tag,     \
			       int comm, int *request))                                        \
	{                                                                                      \
		int large = 1;                                                                 \
		struct message_call c = {step_init, INDEX_##name##_c, 0, (void *)buffer,       \
			count, type, peer, tag, comm, .mode = how, .receives = receiving,      \
			.status = STATUS_IGNORE, .handle = request, .flag = &large};           \
                                                                                               \
		return message_once(&c);                                                       \
	}
INIT(MPI_Send_init, const, MPI_STANDARD, 0)
INIT(MPI_Ssend_init, const, MPI_SYNCHRONOUS, 0)
INIT(MPI_Bsend_init, const, MPI_BUFFERED, 0)
INIT(MPI_Rsend_init, const, MPI_READY, 0)
INIT(MPI_Recv_init, , MPI_STANDARD, 1)

/* ---- begun ---- */

static int start_real(int32_t *real)
{
	return LOWER_CALL(MPI_Start, (int32_t *))(real);
}

/* What its record says of the message. */
static struct message_call message_of(const struct mpi_request *r)
{
	return (struct message_call){.buffer = r->buffer,
		.count = r->count,
		.datatype = r->datatype,
		.peer = r->peer,
		.tag = r->tag,
		.comm = r->comm};
}

static int step_start(struct message_call *c)
{
	struct mpi_request *r = request_of(*c->handle);
	struct message_call message;

	if (!r) {
		c->result = start_real(c->handle);
		return STEP_DONE;
	}
	message = message_of(r);
	if (r->kind != MPI_RECEIVE || r->active || !mpi_messages.queued ||
		!request_receive_queued(r, &message))
		c->result = start_real(&r->real);
	if (c->result)
		return STEP_DONE;
	if (r->kind == MPI_SEND)
		message_sent(r->counts && r->counts->number == r->number ? r->counts : NULL,
			r->peer);
	request_posted(r);
	return STEP_DONE;
}

static int start_request(unsigned index, int *request)
{
	struct message_call c = {
		.step = step_start, .index = index, .handle = request, .status = STATUS_IGNORE};
	struct mpi_request *started = request_of(*request);
	int r = started ? request_start_buffered(started, &c) : -1;
	struct mpi_count *count;

	if (r >= 0)
		return r;
	if (started && request_is_partitioned(started))
		return partitioned_start(started);
	count = gate_enter(*request, index);
	r = message_once(&c);
	gate_leave(count);
	return r;
}

OPEN(MPI_Start, (int *request))
{
	return start_request(INDEX_MPI_Start, request);
}

OPEN(MPI_Startall, (int n, int *requests))
{
	int r = 0;

	for (int i = 0; i < n && !r; i++)
		r = start_request(INDEX_MPI_Startall, &requests[i]);
	return r;
}
