/*
 * drain.c - when all ranks are stopped, what has been sent is received: by the requests that the program has begun, and
 * else as bytes, into queues in upper memory. An order does some of it, and says whether all is done, as it needs
 * others to make progress, too; so all ranks are given such orders until all are done.
 *
 * What is complete is `held` in its request's record, for the program to hear when it asks. Errors are held, too: no
 * handler of the program's may be called while it stands still.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "lower/mpi/functions.h"
#include "lower/mpi/mpi.h"
#include "lower/mpi/mpi_objects.h"
#include "lower/mpi/requests_replay.h"
#include "lower/mpi/windows_replay.h"
#include "lower/records_alloc.h"
#include "lower/runtime.h"
#include "shared/raw.h"
#include "shared/records.h"

/* How long one order takes at most, and how often it looks at least. */
#define SLICE_NS   20000000
#define LOOKS_MIN  16
#define BYTE       0x4c00010d
#define ANY_STATUS ((int *)1)

/* ---- each communicator ---- */

/* Number @i: the predefined ones first. NULL: it is no communicator, or nothing is counted of it. */
static struct mpi_object *comm_number(struct mpi_state *s, uint32_t i)
{
	struct mpi_object *o = i == 0 ? &s->world : i == 1 ? &s->self : s->objects[i - 2];

	return o->real && o->kind == MPI_COMM && o->count && o->count->peers ? o : NULL;
}

static uint32_t comm_numbers(const struct mpi_state *s)
{
	return s->count + 2;
}

/* ---- no handler is called ---- */

static int *silence_handlers(struct mpi_state *s)
{
	int *handlers = calloc(comm_numbers(s), sizeof(*handlers));

	if (!handlers) {
		agent_fail("no memory for error handlers");
		return NULL;
	}
	for (uint32_t i = 0; i < comm_numbers(s); i++) {
		struct mpi_object *o = comm_number(s, i);

		if (o && (MPI_DO(Comm_get_errhandler, o->real, &handlers[i]) ||
				 MPI_DO(Comm_set_errhandler, o->real, MPI_ERRORS_RETURN)))
			return handlers; /* what has been changed is put back */
	}
	return handlers;
}

static void restore_handlers(struct mpi_state *s, int *handlers)
{
	for (uint32_t i = 0; i < comm_numbers(s); i++) {
		struct mpi_object *o = handlers[i] ? comm_number(s, i) : NULL;

		if (!o)
			continue;
		(void)MPI_DO(Comm_set_errhandler, o->real, handlers[i]);
		if (mpi_object_of_real(s, handlers[i]))
			(void)MPI_DO(Errhandler_free, &handlers[i]);
	}
	free(handlers);
}

/* ---- requests ---- */

/* Of a code it means something in this process only. */
static int class_of(int error)
{
	int class = error;

	return error && !mpi.Error_class(error, &class) ? class : error;
}

/* Who was to receive it has been told of it, and does not wait for it: another rank when all try again. */
static void count_withdrawn(struct mpi_peer *peer)
{
	const struct mpi_state *s = RECORDS->mpi;

	peer->sent--;
	if (peer->world == s->rank && peer->due)
		peer->due--;
}

static void hold_completed(struct mpi_request *r, int error, const int *status)
{
	int source = status[MPI_STATUS_SOURCE];

	r->held = 1;
	r->error = class_of(error);
	memcpy(r->status, status, sizeof(r->status));
	if (r->kind == MPI_RECEIVE && !r->counted && r->peer != MPI_PROC_NULL &&
		!(r->cancelled && mpi_is_cancelled(status)) && r->counts &&
		r->counts->number == r->number && source >= 0 &&
		(uint32_t)source < r->counts->size)
		r->counts->peers[source].received++;
	if (r->kind == MPI_SEND && r->cancelled && mpi_is_cancelled(status) && r->counts &&
		r->counts->number == r->number && r->peer >= 0 &&
		(uint32_t)r->peer < r->counts->size)
		count_withdrawn(&r->counts->peers[r->peer]);
}

void request_look(struct mpi_request *r)
{
	int status[MPI_STATUS_INTS] = {
		[MPI_STATUS_SOURCE] = MPI_PROC_NULL, [MPI_STATUS_TAG] = MPI_ANY_TAG};
	int flag = 0, error, real = r->real;

	error = mpi.Test(&real, &flag, status);
	if (!flag && real == r->real)
		return;
	r->real = real;
	/* A persistent one stays when it is complete. */
	if (r->kind == MPI_NONBLOCKING_OTHER && real != MPI_REQUEST_NULL)
		r->persistent = 1;
	hold_completed(r, error, status);
}

/* Whether a nonblocking call, as MPI_Comm_idup, may still have to make a communicator. */
static int may_be_made(struct mpi_messages *m)
{
	for (uint32_t i = 0; m && i < m->used; i++) {
		const struct mpi_request *r = mpi_request_at(m, i);

		if (r->kind == MPI_NONBLOCKING_OTHER && r->active && !r->held)
			return 1;
	}
	return 0;
}

/* The library has no request of it; of a partitioned send there is one of its own when all is ready. */
static int is_own(const struct mpi_request *r)
{
	return r->kind == MPI_BUFFER_FLUSH || r->kind == MPI_PARTITIONED_RECEIVE ||
	       r->kind == MPI_PARTITIONED_SEND;
}

static void look_at_requests(struct mpi_messages *m)
{
	for (uint32_t i = 0; i < m->used; i++) {
		struct mpi_request *r = mpi_request_at(m, i);

		if (r->kind && r->kind != MPI_MATCHED_MESSAGE && !is_own(r) && r->active &&
			!r->held && !mpi_request_elder(r))
			request_look(r);
	}
}

/* ---- messages that nobody has asked for ---- */

/* Memory that is the program's, and goes into the image. */
static void *map_memory(struct mpi_messages *m, uint64_t size)
{
	for (int i = 0; i < 2; i++) {
		uint64_t at = m->next_map ? m->next_map : MESSAGES_WINDOW;

		while (at + size <= MESSAGES_WINDOW + MESSAGES_WINDOW_SIZE) {
			long r = raw(SYS_mmap, at, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

			m->next_map = at + size;
			if (r == (long)at)
				return (void *)at;
			if (!raw_failed(r))
				raw(SYS_munmap, r, size);
			else if (r != -17 /* EEXIST */)
				return NULL;
			at = m->next_map;
		}
		m->next_map = 0;
	}
	return NULL;
}

static struct mpi_message *new_message(struct mpi_messages *m, uint64_t size)
{
	int class = mpi_message_class(sizeof(struct mpi_message) + size);
	uint64_t total =
		class < 0 ? (sizeof(struct mpi_message) + size + 4095) & ~4095ul : 1ul << class;
	struct mpi_message *message = class < 0 ? map_memory(m, total) : m->memory[class];

	if (class >= 0 && message)
		m->memory[class] = message->next;
	else if (class >= 0)
		message = records_alloc(total);
	if (!message) {
		agent_fail("no memory for a message of %lu bytes", size);
		return NULL;
	}
	message->next = NULL;
	message->size = size;
	message->room = total - sizeof(*message);
	message->bytes = (char *)(message + 1);
	return message;
}

/* What is begun continues also when the checkpoint is given up: the program finds it in the queue. */
static struct mpi_message *begin_bytes(struct mpi_messages *m, int real, const int *status)
{
	uint64_t size = mpi_received_size(status);
	struct mpi_message *message = new_message(m, size);
	int failed;

	if (!message)
		return NULL;
	message->source = status[MPI_STATUS_SOURCE];
	message->tag = status[MPI_STATUS_TAG];
	if (size <= INT32_MAX)
		failed = MPI_DO(
			Imrecv, message->bytes, (int)size, BYTE, &real, &message->request);
	else
		failed = mpi.Imrecv_c ? MPI_DO(Imrecv_c, message->bytes, (int64_t)size, BYTE,
						&real, &message->request)
				      : agent_fail("the MPI library has no MPI_Imrecv_c");
	return failed ? NULL : message;
}

static void append_message(
	struct mpi_messages *m, struct mpi_count *counts, struct mpi_message *message)
{
	struct mpi_message **at = &counts->messages;

	while (*at)
		at = &(*at)->next;
	*at = message;
	m->queued++;
}

static int is_short_of(const struct mpi_count *c)
{
	for (uint32_t i = 0; i < c->size; i++)
		if (c->peers[i].received < c->peers[i].due)
			return 1;
	return 0;
}

/* All that have come to one communicator. */
static int take_messages(struct mpi_messages *m, struct mpi_object *comm)
{
	struct mpi_count *c = comm->count;

	while (is_short_of(c)) {
		int flag = 0, real, status[MPI_STATUS_INTS];
		struct mpi_message *message;

		if (MPI_DO(Improbe, MPI_ANY_SOURCE, MPI_ANY_TAG, comm->real, &flag, &real,
			    status))
			return -1;
		if (!flag)
			return 0;
		message = begin_bytes(m, real, status);
		if (!message)
			return -1;
		append_message(m, c, message);
		c->peers[message->source].received++;
	}
	return 0;
}

/* What a probe of the program's has taken. */
static int take_matched(struct mpi_messages *m)
{
	for (uint32_t i = 0; i < m->used; i++) {
		struct mpi_request *r = mpi_request_at(m, i);

		if (r->kind != MPI_MATCHED_MESSAGE || r->message)
			continue;
		r->message = begin_bytes(m, r->real, r->status);
		if (!r->message)
			return -1;
		r->real = MPI_REQUEST_NULL;
	}
	return 0;
}

static int take_all(struct mpi_state *s)
{
	int begun = may_be_made(s->messages);

	for (uint32_t i = 0; i < comm_numbers(s); i++) {
		struct mpi_object *comm = comm_number(s, i);

		/* What is not made yet may take another one's messages for its own. */
		if (!comm || (begun && comm->count->number & MPI_NUMBER_OF_COPY))
			continue;
		if (take_messages(s->messages, comm))
			return -1;
	}
	return take_matched(s->messages);
}

/* ---- is that all ---- */

static int look_at_message(struct mpi_message *message)
{
	int flag = 0, status[MPI_STATUS_INTS];

	if (message->request == MPI_REQUEST_NULL)
		return 0;
	return MPI_DO(Test, &message->request, &flag, status);
}

/* 1: all bytes are there. */
static int is_whole(struct mpi_message *message, int *failed)
{
	if (look_at_message(message))
		*failed = 1;
	return message->request == MPI_REQUEST_NULL;
}

/* A synchronous send is what is told first. */
static int tell_wait(struct mpi_messages *m, const struct mpi_count *c, uint32_t call, int peer)
{
	if (m->synchronous)
		return 0;
	m->wait = (struct mpi_wait){.call = call,
		.peer = c && peer >= 0 && (uint32_t)peer < c->size ? c->peers[peer].world : -1,
		.number = c ? c->number : MPI_NUMBER_WORLD};
	return 0;
}

/* The communicator may have been freed, and what is counted there be another one's. */
static int tell_request(struct mpi_messages *m, const struct mpi_request *r)
{
	int is_own = r->counts && r->counts->number == r->number;

	return tell_wait(m, is_own ? r->counts : NULL, r->call, r->peer);
}

static int is_request_drained(struct mpi_messages *m, struct mpi_request *r, int *failed)
{
	int synchronous = r->kind == MPI_SEND && r->mode == MPI_SYNCHRONOUS;

	if (r->kind == MPI_MATCHED_MESSAGE)
		return (r->message && is_whole(r->message, failed)) || tell_request(m, r);
	if (!r->active || r->held || r->kind == MPI_RECEIVE || is_own(r))
		return 1;
	tell_request(m, r);
	m->synchronous += synchronous;
	return 0;
}

static int are_requests_drained(struct mpi_messages *m, int *failed)
{
	int drained = 1;

	for (uint32_t i = 0; i < m->used; i++)
		if (mpi_request_at(m, i)->kind)
			drained &= is_request_drained(m, mpi_request_at(m, i), failed);
	return drained;
}

static int is_comm_drained(struct mpi_messages *m, const struct mpi_count *c, int *failed)
{
	int drained = 1;

	for (struct mpi_message *message = c->messages; message; message = message->next)
		if (!is_whole(message, failed))
			drained = tell_wait(m, c, 0, message->source);
	for (uint32_t i = 0; i < c->size; i++)
		if (c->peers[i].received < c->peers[i].due)
			drained = tell_wait(m, c, 0, i);
	return drained;
}

static int is_drained(struct mpi_state *s, int *failed)
{
	struct mpi_messages *m = s->messages;
	int drained;

	m->synchronous = 0;
	drained = are_requests_drained(m, failed);
	for (uint32_t i = 0; i < comm_numbers(s); i++) {
		struct mpi_object *comm = comm_number(s, i);

		if (comm)
			drained &= is_comm_drained(m, comm->count, failed);
	}
	return drained;
}

/* ---- objects ---- */

static int objects_unsaved;

int objects_save_unless_begun(struct mpi_state *s)
{
	int r;

	objects_unsaved = s->initialised && may_be_made(s->messages);
	if (objects_unsaved)
		return 0;
	if (agent_check_wanted())
		return -1;
	s->reserve(1);
	r = objects_save(s);
	s->reserve(0);
	return r;
}

/* ---- an order ---- */

uint64_t mpi_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* Others may need our progress for what we have finished. */
static int look_for_a_while(struct mpi_state *s, int take)
{
	uint64_t until = mpi_now_ns() + SLICE_NS;
	int failed = 0, flag, drained = 0, done = 0;

	for (int looks = 0; !failed && (looks < LOOKS_MIN || !done) && mpi_now_ns() < until;
		looks++) {
		failed = MPI_DO(Iprobe, 0, MPI_UNUSED_TAG, MPI_COMM_WORLD, &flag, ANY_STATUS) ||
			 agent_check_wanted();
		/* Threads may run again, and be about to ask for the same requests. */
		if (failed)
			break;
		look_at_requests(s->messages);
		if (take)
			failed = take_all(s);
		drained = is_drained(s, &failed);
		done = take ? drained : !s->messages->synchronous;
		if (!done)
			raw(SYS_sched_yield);
	}
	s->messages->drained = drained;
	return failed ? -1 : 0;
}

static int drain_until(struct mpi_state *s, int take, uint64_t until_ns)
{
	int *handlers, r;

	if (mpi_functions_find() < 0 || requests_check(s))
		return -1;
	handlers = silence_handlers(s);
	if (!handlers)
		return -1;
	r = take ? windows_complete(s, until_ns) : 0;
	if (!r)
		r = look_for_a_while(s, take);
	restore_handlers(s, handlers);
	if (!r && s->messages->drained && objects_unsaved) {
		objects_unsaved = 0;
		r = objects_save(s);
	}
	return r;
}

int mpi_drain(int take, uint64_t patience_ns)
{
	struct mpi_state *s = RECORDS->mpi;
	int r;

	if (!s || !s->initialised || s->finalized)
		return 0;
	/* Given up already: threads may run, and be in the library. */
	if (agent_check_wanted())
		return -1;
	s->reserve(1);
	r = drain_until(s, take, mpi_now_ns() + patience_ns);
	s->reserve(0);
	return r;
}
