/*
 * messages_probe.c - looks for messages, and receives of messages that such a look has matched.
 */
#include "stubs/mpi/messages.h"

#include "mpi.index.h"

typedef int imrecv(void *, int, int, int32_t *, int32_t *);
typedef int imrecv_large(void *, int64_t, int, int32_t *, int32_t *);

/* A call that does not wait has found nothing. */
static void note_poll(const struct message_call *c)
{
	mpi_messages.poll_call = c->index;
	mpi_messages.polls++;
}

/* ---- probes ---- */

/* What a probe has come to, for its result @r. */
static int probed(int r)
{
	return r ? r : error_told();
}

/* 1: there is one, or an error. */
static int probe_message(struct message_call *c, int looks)
{
	struct mpi_message *m = queue_match(message_counts(c), c->peer, c->tag, 0);
	int32_t comm = real_handle(c->comm);
	int flag = m != NULL;

	if (m)
		queue_status(m, c->status);
	tell_error(0);
	while (looks-- && !flag && !c->result)
		c->result = probed(LOWER_CALL(MPI_Iprobe, (int, int, int, int *, int32_t *))(
			c->peer, c->tag, comm, &flag, c->status));
	if (c->flag)
		*c->flag = flag;
	return flag || c->result;
}

static int step_probe(struct message_call *c)
{
	return probe_message(c, STEP_LOOKS) ? STEP_DONE : STEP_AGAIN;
}

static int step_iprobe(struct message_call *c)
{
	if (!probe_message(c, 1))
		note_poll(c);
	return STEP_DONE;
}

OPEN(MPI_Probe, (int source, int tag, int comm, int *status))
{
	struct message_call c;

	message_call_about(&c, step_probe, INDEX_MPI_Probe, NULL, 0, 0, source, tag, comm);
	c.status = status;
	return message_wait(&c);
}

OPEN(MPI_Iprobe, (int source, int tag, int comm, int *flag, int *status))
{
	struct message_call c;

	message_call_about(&c, step_iprobe, INDEX_MPI_Iprobe, NULL, 0, 0, source, tag, comm);
	c.flag = flag;
	c.status = status;
	return message_once(&c);
}

/* ---- probes that take the message ---- */

static void message_found(struct message_call *c, struct mpi_request *r)
{
	request_describe(r, c);
	r->kind = MPI_MATCHED_MESSAGE;
	*c->handle = r->handle;
}

static int match_queued(struct message_call *c, struct mpi_request *r)
{
	r->message = queue_match(message_counts(c), c->peer, c->tag, 1);
	if (!r->message)
		return 0;
	queue_status(r->message, c->status);
	r->real = MPI_REQUEST_NULL;
	message_found(c, r);
	return 1;
}

static int match_message(struct message_call *c, struct mpi_request *r, int looks)
{
	int32_t comm = real_handle(c->comm), own[MPI_STATUS_INTS] = {0};
	int32_t *status = c->status == STATUS_IGNORE ? own : c->status;
	int flag = 0;

	tell_error(0);
	while (looks-- && !flag && !c->result)
		c->result = probed(
			LOWER_CALL(MPI_Improbe, (int, int, int, int *, int32_t *, int32_t *))(
				c->peer, c->tag, comm, &flag, &r->real, status));
	if (!flag || c->result) {
		request_untake(r);
		return c->result != 0;
	}
	if (status[MPI_STATUS_SOURCE] < 0) { /* MPI_MESSAGE_NO_PROC */
		*c->handle = r->real;
		request_untake(r);
		return 1;
	}
	message_found(c, r);
	r->peer = status[MPI_STATUS_SOURCE];
	r->tag = status[MPI_STATUS_TAG];
	for (int i = 0; i < MPI_STATUS_INTS; i++)
		r->status[i] = status[i];
	message_received(r->counts, r->peer);
	return 1;
}

static int step_match(struct message_call *c)
{
	struct mpi_request *r = request_take();
	int flag;

	if (!r)
		return STEP_ROOM;
	flag = match_queued(c, r) || match_message(c, r, c->flag ? 1 : STEP_LOOKS);
	if (!c->flag)
		return flag ? STEP_DONE : STEP_AGAIN;
	*c->flag = flag && !c->result;
	if (!flag)
		note_poll(c);
	return STEP_DONE;
}

OPEN(MPI_Mprobe, (int source, int tag, int comm, int *message, int *status))
{
	struct message_call c;

	message_call_about(&c, step_match, INDEX_MPI_Mprobe, NULL, 0, 0, source, tag, comm);
	c.handle = message;
	c.status = status;
	return message_wait(&c);
}

OPEN(MPI_Improbe, (int source, int tag, int comm, int *flag, int *message, int *status))
{
	struct message_call c;

	message_call_about(&c, step_match, INDEX_MPI_Improbe, NULL, 0, 0, source, tag, comm);
	c.flag = flag;
	c.handle = message;
	c.status = status;
	return message_once(&c);
}

/* ---- receives of these ---- */

static int begin_matched(const struct message_call *c, int32_t *message, int32_t *real)
{
	int32_t type = real_handle(c->datatype);

	if (c->count > INT32_MAX)
		return ((imrecv_large *)mpi_targets[INDEX_MPI_Imrecv_c])(
			c->buffer, c->count, type, message, real);
	return ((imrecv *)mpi_targets[INDEX_MPI_Imrecv])(
		c->buffer, (int)c->count, type, message, real);
}

/* A message that is none of ours: MPI_MESSAGE_NO_PROC, or an error. */
static int begin_unknown(struct message_call *c, struct mpi_request **made)
{
	struct mpi_request *r = request_take();

	if (!r)
		return STEP_ROOM;
	c->comm = COMM_WORLD;
	c->result = begin_matched(c, c->handle, &r->real);
	if (c->result) {
		request_untake(r);
		return STEP_DONE;
	}
	*made = r;
	return STEP_DONE;
}

/* The record of the message becomes the request's. */
static int begin_known(struct message_call *c, struct mpi_request *r)
{
	int32_t message = r->real;

	c->comm = r->comm;
	c->peer = r->peer;
	c->tag = r->tag;
	if (r->message) {
		r->error = queue_deliver(r->message, c, r->status);
		r->message = NULL;
		r->held = 1;
	} else {
		c->result = begin_matched(c, &message, &r->real);
		if (c->result)
			return STEP_DONE;
	}
	*c->handle = MPI_REQUEST_NULL;
	return STEP_DONE;
}

static int begin_matched_receive(struct message_call *c, struct mpi_request **made)
{
	struct mpi_request *r = request_of(*c->handle);
	int step;

	if (r && r->kind != MPI_MATCHED_MESSAGE)
		r = NULL;
	*made = r;
	step = r ? begin_known(c, r) : begin_unknown(c, made);
	r = *made;
	if (step != STEP_DONE || c->result)
		return step;
	request_describe(r, c);
	r->kind = MPI_MATCHED_RECEIVE;
	r->counted = 1;
	request_use_type(r);
	request_posted(r);
	return STEP_DONE;
}

static int step_mrecv(struct message_call *c)
{
	int step = begin_matched_receive(c, &c->requests[0]);

	if (step != STEP_DONE || c->result) {
		c->requests[0] = NULL;
		return step;
	}
	c->step = step_look;
	return step_look(c);
}

static int step_imrecv(struct message_call *c)
{
	struct mpi_request *r;
	int step = begin_matched_receive(c, &r);

	if (step == STEP_DONE && !c->result)
		*c->request = r->handle;
	return step;
}

/* Templates, as each function has a second one with large counts, of another type and index. */
#define MATCHED(name, count_type)                                                              \
	OPEN(name, (void *buffer, count_type count, int type, int *message, int *status))      \
	{                                                                                      \
		struct message_call c = {.step = step_mrecv,                                   \
			.index = INDEX_##name,                                                 \
			.buffer = buffer,                                                      \
			.count = count,                                                        \
			.datatype = type,                                                      \
			.handle = message,                                                     \
			.status = status};                                                     \
                                                                                               \
		return message_wait(&c);                                                       \
	}
MATCHED(MPI_Mrecv, int)
MATCHED(MPI_Mrecv_c, int64_t)

#define BEGIN_MATCHED(name, count_type)                                                        \
	OPEN(name, (void *buffer, count_type count, int type, int *message, int *request))     \
	{                                                                                      \
		struct message_call c = {.step = step_imrecv,                                  \
			.index = INDEX_##name,                                                 \
			.buffer = buffer,                                                      \
			.count = count,                                                        \
			.datatype = type,                                                      \
			.handle = message,                                                     \
			.request = request,                                                    \
			.status = STATUS_IGNORE};                                              \
                                                                                               \
		return message_once(&c);                                                       \
	}
BEGIN_MATCHED(MPI_Imrecv, int)
BEGIN_MATCHED(MPI_Imrecv_c, int64_t)
