/*
 * Messages. Small ones take their bytes with them; large ones and synchronous ones of all sizes are sent when they
 * have been matched. A buffer is read as late as can be.
 */
#include "messages.h"

#include <stdlib.h>
#include <string.h>

#define TAG_UB 32767
#define CHUNK  4000

static struct arrival *unexpected; /* the oldest first */

void sim_progress(void)
{
	wire_progress();
	if (!sim_in_thread)
		windows_progress();
	requests_sweep();
	collectives_progress();
	wire_progress();
}

static struct request *request_by_id(uint64_t id)
{
	struct request *r = sim_requests;

	while (r && r->id != id)
		r = r->next;
	if (!r)
		sim_fatal("a peer tells of a request that there is not");
	return r;
}

/* ---- a message and its receive ---- */

static void answer(const struct arrival *a, uint32_t kind, uint64_t receiver)
{
	const struct frame f = {.kind = kind, .sender = a->frame.sender, .receiver = receiver};

	wire_send(a->from, &f, NULL, NULL);
}

static void receive(struct request *r, struct arrival *a)
{
	const struct frame *f = &a->frame;
	uint64_t size = f->size < r->room ? f->size : r->room;

	r->matched = true;
	r->error = f->size > r->room ? MPI_ERR_TRUNCATE : 0;
	r->status.MPI_SOURCE = f->source;
	r->status.MPI_TAG = f->tag;
	r->status.count_lo = (int)size;
	if (f->kind == EAGER) {
		memcpy(r->buffer, a->bytes, size);
		if (f->sender)
			answer(a, MATCHED, 0);
		request_done(r);
	} else {
		answer(a, CLEAR_TO_SEND, r->id);
	}
	free(a);
}

static bool is_for(const struct arrival *a, uint64_t context, int source, int tag)
{
	return a->frame.context == context &&
	       (source == MPI_ANY_SOURCE || source == a->frame.source) &&
	       (tag == MPI_ANY_TAG || tag == a->frame.tag);
}

void message_arrived(struct arrival *a)
{
	struct arrival **end = &unexpected;

	for (struct request *r = sim_requests; r; r = r->next)
		if (r->kind == RECEIVES && !r->matched && !r->done &&
			is_for(a, r->context, r->peer, r->tag)) {
			receive(r, a);
			return;
		}
	while (*end)
		end = &(*end)->next;
	*end = a;
}

static struct arrival **find_unexpected(uint64_t context, int source, int tag)
{
	struct arrival **at = &unexpected;

	while (*at && !is_for(*at, context, source, tag))
		at = &(*at)->next;
	return at;
}

static struct arrival *take(struct arrival **at)
{
	struct arrival *a = *at;

	*at = a->next;
	return a;
}

/* ---- bytes of large ones ---- */

static void send_bytes(struct request *r, int to, uint64_t receiver)
{
	uint64_t at = 0;

	do {
		uint64_t left = r->room - at;
		struct frame f = {.kind = DATA,
			.receiver = receiver,
			.size = r->room,
			.bytes = left < CHUNK ? left : CHUNK};

		wire_send(to, &f, r->buffer + at, left <= CHUNK ? &r->sent : NULL);
		at += f.bytes;
	} while (at < r->room);
}

static void receive_bytes(const struct arrival *a)
{
	struct request *r = request_by_id(a->frame.receiver);
	uint64_t left = r->got < r->room ? r->room - r->got : 0;

	memcpy(r->buffer + r->got, a->bytes, a->frame.bytes < left ? a->frame.bytes : left);
	r->got += a->frame.bytes;
	if (r->got == a->frame.size)
		request_done(r);
}

void message_control(const struct arrival *a)
{
	struct request *r;

	if (a->frame.kind == DATA) {
		receive_bytes(a);
		return;
	}
	if (a->frame.kind == OPERATION_DONE) {
		window_answered(request_by_id(a->frame.receiver), a);
		return;
	}
	r = request_by_id(a->frame.sender);
	r->matched = true;
	if (a->frame.kind == CLEAR_TO_SEND)
		send_bytes(r, a->from, a->frame.receiver);
}

/* ---- begun ---- */

static struct request *begin_send(struct comm *comm, uint64_t context, const void *data,
	uint64_t size, int to, int tag, bool synchronous)
{
	struct request *r = request_new(SENDS, comm);
	struct frame f = {.context = context, .size = size, .source = comm->rank, .tag = tag};

	r->buffer = (char *)data;
	r->room = size;
	f.kind = size > EAGER_MAX || (synchronous && sim_chance(2)) ? REQUEST_TO_SEND : EAGER;
	r->matched = f.kind == EAGER && !synchronous;
	f.sender = r->matched ? 0 : r->id;
	if (f.kind == EAGER)
		f.bytes = size;
	wire_send(comm->group.world[to], &f, data, f.kind == EAGER ? &r->sent : NULL);
	return r;
}

struct request *message_send(
	struct comm *comm, uint64_t context, const void *data, uint64_t size, int to, int tag)
{
	return begin_send(comm, context, data, size, to, tag, false);
}

struct request *message_receive(
	struct comm *comm, uint64_t context, void *data, uint64_t room, int from, int tag)
{
	struct request *r = request_new(RECEIVES, comm);
	struct arrival **at = find_unexpected(context, from, tag);

	r->context = context;
	r->buffer = data;
	r->room = room;
	r->peer = from;
	r->tag = tag;
	if (*at)
		receive(r, take(at));
	return r;
}

/* ---- calls ---- */

/* With the lock: 0, or what is wrong. */
static int check(const struct comm *c, int64_t bytes, int peer, int tag, bool any)
{
	if (!c)
		return MPI_ERR_COMM;
	if (bytes < 0)
		return MPI_ERR_TYPE;
	if ((peer < 0 || peer >= c->group.size) && peer != MPI_PROC_NULL &&
		!(any && peer == MPI_ANY_SOURCE))
		return MPI_ERR_RANK;
	if ((tag < 0 || tag > TAG_UB) && !(any && tag == MPI_ANY_TAG))
		return MPI_ERR_TAG;
	return 0;
}

static void give(struct request *r, MPI_Request *request)
{
	r->handle = *request = handle_make(REQUEST, r);
}

static void nobody(struct request *r)
{
	r->matched = r->sent = true;
	r->status.MPI_SOURCE = MPI_PROC_NULL;
	request_done(r);
}

static int send(const void *buffer, int count, MPI_Datatype type, int to, int tag,
	MPI_Comm comm, bool synchronous, MPI_Request *request)
{
	int64_t bytes = type_bytes(type, count);
	struct comm *c;
	int r;

	sim_lock();
	c = comm_find(comm);
	r = check(c, bytes, to, tag, false);
	if (!r && !handle_left(REQUEST))
		r = MPI_ERR_OTHER;
	if (!r && to == MPI_PROC_NULL) {
		give(request_new(SENDS, c), request);
		nobody(handle_find(REQUEST, *request));
	} else if (!r) {
		give(begin_send(c, c->context, buffer, bytes, to, tag, synchronous), request);
		sim_progress();
	}
	sim_unlock();
	return comm_failed(c, r);
}

#define SEND(name, synchronous)                                                                \
	int name(const void *buffer, int count, MPI_Datatype type, int to, int tag,            \
		MPI_Comm comm, MPI_Request *request)                                           \
	{                                                                                      \
		return send(buffer, count, type, to, tag, comm, synchronous, request);         \
	}
SEND(MPI_Isend, false)
SEND(MPI_Irsend, false)
SEND(MPI_Issend, true)

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
	MPI_Request *request)
{
	int64_t bytes = type_bytes(type, count);
	struct comm *c;
	int r;

	sim_lock();
	c = comm_find(comm);
	r = check(c, bytes, from, tag, true);
	if (!r && !handle_left(REQUEST))
		r = MPI_ERR_OTHER;
	if (!r && from == MPI_PROC_NULL) {
		give(request_new(RECEIVES, c), request);
		nobody(handle_find(REQUEST, *request));
	} else if (!r) {
		give(message_receive(c, c->context, buffer, bytes, from, tag), request);
		sim_progress();
	}
	sim_unlock();
	return comm_failed(c, r);
}

/* ---- probes ---- */

static void describe(const struct arrival *a, MPI_Status *status)
{
	if (status == MPI_STATUS_IGNORE)
		return;
	status->count_lo = (int)a->frame.size;
	status->count_hi_and_cancelled = 0;
	status->MPI_SOURCE = a->frame.source;
	status->MPI_TAG = a->frame.tag;
}

/* With the lock. A message is given to @message, if that is not NULL. */
static int probe(
	int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)
{
	struct comm *c = comm_find(comm);
	int r = check(c, 0, source, tag, true);
	struct arrival **at;

	*flag = 0;
	if (r)
		return comm_failed(c, r);
	sim_progress();
	at = find_unexpected(c->context, source, tag);
	if (!*at || !sim_seen((*at)->visible) || (message && !handle_left(REQUEST)))
		return 0;
	*flag = 1;
	describe(*at, status);
	if (message)
		*message = handle_make(REQUEST, take(at));
	return 0;
}

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
	int r;

	sim_lock();
	r = probe(source, tag, comm, flag, NULL, status);
	sim_unlock();
	return r;
}

int MPI_Improbe(
	int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)
{
	int r;

	sim_lock();
	r = probe(source, tag, comm, flag, message, status);
	sim_unlock();
	return r;
}

int MPI_Imrecv(
	void *buffer, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request)
{
	struct request *r = NULL;
	struct arrival *a;

	sim_lock();
	a = handle_find(REQUEST, *message);
	if (a) {
		handle_drop(REQUEST, *message);
		*message = MPI_MESSAGE_NULL;
		r = request_new(RECEIVES, comm_find(MPI_COMM_WORLD));
		r->buffer = buffer;
		r->room = type_bytes(type, count);
		receive(r, a);
		give(r, request);
	}
	sim_unlock();
	return r ? 0 : comm_failed(NULL, MPI_ERR_REQUEST);
}

/* ---- calls that wait, which are loops of calls that do not ---- */

#define WAITING(name, begin)                                                                   \
	int name(const void *buffer, int count, MPI_Datatype type, int to, int tag,            \
		MPI_Comm comm)                                                                 \
	{                                                                                      \
		MPI_Request request;                                                           \
		int r = begin(buffer, count, type, to, tag, comm, &request);                   \
                                                                                               \
		return r ? r : MPI_Wait(&request, MPI_STATUS_IGNORE);                          \
	}
WAITING(MPI_Send, MPI_Isend)
WAITING(MPI_Ssend, MPI_Issend)

/* It takes none of the requests that there are for the program. */
int MPI_Sendrecv(const void *from, int count, MPI_Datatype type, int to, int tag, void *buffer,
	int room, MPI_Datatype received, int source, int expected, MPI_Comm comm,
	MPI_Status *status)
{
	int64_t out = type_bytes(type, count), in = type_bytes(received, room);
	struct request *s, *r;
	struct comm *c;
	int error;

	sim_lock();
	c = comm_find(comm);
	error = check(c, out, to, tag, false);
	if (!error)
		error = check(c, in, source, expected, true);
	if (!error) {
		r = message_receive(c, c->context, buffer, in, source, expected);
		s = message_send(c, c->context, from, out, to, tag);
		while (!r->done || !s->done)
			sim_pause();
		error = r->error;
		if (status != MPI_STATUS_IGNORE)
			*status = r->status;
		request_drop(s);
		request_drop(r);
	}
	sim_unlock();
	return comm_failed(c, error);
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
	MPI_Status *status)
{
	MPI_Request request;
	int r = MPI_Irecv(buffer, count, type, from, tag, comm, &request);

	return r ? r : MPI_Wait(&request, status);
}

int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
	int flag = 0, r = 0;

	while (!flag && !r)
		r = MPI_Iprobe(source, tag, comm, &flag, status);
	return r;
}

int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
	int flag = 0, r = 0;

	while (!flag && !r)
		r = MPI_Improbe(source, tag, comm, &flag, message, status);
	return r;
}

int MPI_Mrecv(
	void *buffer, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status)
{
	MPI_Request request;
	int r = MPI_Imrecv(buffer, count, type, message, &request);

	return r ? r : MPI_Wait(&request, status);
}
