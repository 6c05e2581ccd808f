/*
 * requests.h - the program's requests (shared/mpi/message_records.h), and the steps of calls that are about messages.
 *
 * A thread can be stopped for a checkpoint only outside of the lower half. So no call waits there: it is made of
 * steps, each of which begins something or looks whether it is complete, and returns. In between the thread is
 * in code of the upper half that is not guarded, and all that is under way is in the table of requests. A step
 * runs behind the crossing, on the lower half's FS base: nothing thread-local may be touched in it, and it calls the
 * real library by LOWER_CALL().
 */
#ifndef STUBS_MPI_REQUESTS_H
#define STUBS_MPI_REQUESTS_H

#include "shared/mpi/message_records.h"
#include "shared/raw.h"
#include "stubs/mpi/handle_table.h"

typedef int MPI_Request, MPI_Message, MPI_Status;

#define LOWER_CALL(name, parameters) ((int(*) parameters)mpi_targets[INDEX_##name])

#define STATUS_IGNORE ((int32_t *)1)

enum {
	MPI_THREAD_MULTIPLE = 3,
	MPI_ROOT = -3,
	MPI_UNDEFINED = -32766,
	MPI_ERR_IN_STATUS = 17,
	MPI_ERR_PENDING = 18,
	MPI_ERR_REQUEST = 19,
	ERRORS_ARE_FATAL = 0x54000000,
	ERRORS_RETURN = 0x54000001,
	PACKED = 0x4c00010f,
	BYTE = 0x4c00010d,
	COMM_WORLD = 0x44000000,
	COMM_SELF = 0x44000001,
};

enum step_result {
	STEP_DONE,
	STEP_AGAIN, /* nothing is complete yet */
	STEP_ROOM,  /* nothing has been done, as there were no free requests */
};

/* A call under way. */
struct message_call {
	int (*step)(
		struct message_call *); /* the first word: where the crossing looks for it */
	unsigned index;                 /* the function that the program has called */
	int result;                     /* of it, when it is done */
	void *buffer;
	int64_t count;
	int32_t datatype, peer, tag, comm;
	uint8_t mode;                    /* enum mpi_send_mode */
	uint8_t receives;                /* of a call that makes persistent requests */
	int32_t *status;                 /* the program's, or STATUS_IGNORE */
	int32_t *handle;                 /* out: of a request or message */
	int *flag;                       /* out; NULL: the call waits */
	int32_t *request;                /* out, where *handle is a message */
	struct mpi_request *requests[2]; /* of ours, which are under way */
	struct message_call *other;      /* the send that goes with a receive */
	struct mpi_message *packed;      /* memory with what is sent, or NULL */
	struct mpi_buffer *in;           /* of a buffered send, or what is waited for in it */
	/* Calls about several requests: `handle` and `status` are arrays. */
	int n, *index_out, *indices;
	int paired;                /* how many a send holds back */
	int apart;                 /* how many are to be tested by themselves */
	int32_t *reals, *statuses; /* what the library is given */
} __attribute__((aligned(16)));

/* All of @c is zero. Compilers make `rep stos` of an initializer, which takes 24 cycles more. */
static inline void message_call_clear(struct message_call *c)
{
	typedef long long words __attribute__((vector_size(16), may_alias));
	volatile words *at = (volatile words *)c;

#pragma GCC unroll 16
	for (unsigned i = 0; i < sizeof(*c) / sizeof(*at); i++)
		at[i] = (words){0};
}

/* Begin a call about requests of which @handle is the first; @flag NULL: it waits. */
static inline void message_call_completes(struct message_call *c,
	int (*step)(struct message_call *), unsigned index, int32_t *handle, int *flag,
	int32_t *status)
{
	message_call_clear(c);
	c->step = step;
	c->index = index;
	c->handle = handle;
	c->flag = flag;
	c->status = status;
	c->comm = COMM_WORLD;
	c->peer = MPI_ANY_SOURCE;
}

/* Begin a call about a message; its status is ignored. */
static inline void message_call_about(struct message_call *c,
	int (*step)(struct message_call *), unsigned index, void *buffer, int64_t count,
	int32_t datatype, int32_t peer, int32_t tag, int32_t comm)
{
	message_call_clear(c);
	c->step = step;
	c->index = index;
	c->buffer = buffer;
	c->count = count;
	c->datatype = datatype;
	c->peer = peer;
	c->tag = tag;
	c->comm = comm;
	c->status = STATUS_IGNORE;
}

extern STUB_HIDDEN struct mpi_messages mpi_messages;

/* Assembly: make c->step behind the crossing, or @body in front of it, guarded. */
STUB_HIDDEN int mpi_step(struct message_call *c);
STUB_HIDDEN int mpi_guarded(void *argument, int (*body)(void *argument));

/* Make a call that does not wait, or a call that waits for @peer of its communicator. The call's result. */
STUB_HIDDEN int message_once(struct message_call *c);
STUB_HIDDEN int message_wait(struct message_call *c);

/* How often a step looks for what it waits for. */
#define STEP_LOOKS 64

/* ---- in steps ---- */

static inline int are_threads(void)
{
	return mpi_state.provided == MPI_THREAD_MULTIPLE;
}

static inline void messages_lock(void)
{
	if (are_threads())
		raw_lock(&mpi_messages.lock);
}

static inline void messages_unlock(void)
{
	if (are_threads())
		raw_unlock(&mpi_messages.lock);
}

static inline void count_up(uint64_t *count)
{
	if (are_threads())
		__atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
	else
		++*count;
}

static inline struct mpi_object *comm_object(int32_t comm)
{
	if (comm == COMM_WORLD)
		return &mpi_state.world;
	return comm == COMM_SELF ? &mpi_state.self : object_of(comm);
}

/* What the library calls the object of a handle. */
static inline int32_t real_handle(int32_t handle)
{
	struct mpi_object *o;

	if (!mpi_is_virtual(handle))
		return handle;
	o = object_of(handle);
	return o ? o->real : 0;
}

/* The request that the program means; NULL: none of ours. */
static inline struct mpi_request *request_of(int32_t handle)
{
	const uint32_t mark = MPI_VIRTUAL | MPI_REQUEST << MPI_KIND_SHIFT;
	uint32_t index = handle & ~mark;
	struct mpi_request *r;

	if (((uint32_t)handle & mark) != mark || index >= mpi_messages.used)
		return NULL;
	r = mpi_request_at(&mpi_messages, index);
	return r->kind && r->handle == handle ? r : NULL;
}

/* A free one, or NULL; back as it was taken; and back with what belongs to it. */
STUB_HIDDEN struct mpi_request *request_take(void);
STUB_HIDDEN void request_untake(struct mpi_request *r);
STUB_HIDDEN void request_give_back(struct mpi_request *r);

/* It is to outlive the call: keep what its message is. */
STUB_HIDDEN void request_describe(struct mpi_request *r, const struct message_call *c);
/* It has become active. */
STUB_HIDDEN void request_posted(struct mpi_request *r);
/* Its datatype stays until it is given back. */
STUB_HIDDEN void request_use_type(struct mpi_request *r);

/* A message has been sent to @peer, or received from it. */
STUB_HIDDEN void message_sent(struct mpi_count *counts, int peer);
STUB_HIDDEN void message_received(struct mpi_count *counts, int peer);

/* 1: @r is not held back by a send that is not complete. */
STUB_HIDDEN int request_is_single(struct mpi_request *r);

/* Most are: of one message, and as the library has it. */
static inline int request_is_plain(const struct mpi_request *r)
{
	return r->kind < MPI_NONBLOCKING_OTHER && !r->pair && !r->held;
}

/* In a step: whether @r is of a nonblocking call about a file. */
STUB_HIDDEN int request_is_of_file(const struct mpi_request *r);
/* Whether it is, and is not complete yet, so that the library is not to be given it. When it is complete, it is
 * held. */
STUB_HIDDEN int request_is_withheld(struct mpi_request *r);

/* The real request of @r, now @real, is complete: count what it has received; the program holds it as *@handle. */
STUB_HIDDEN void request_complete(
	struct mpi_request *r, int32_t real, const int32_t *status, int32_t *handle);
/* The same of a request that is held, with its result for the program. */
STUB_HIDDEN int request_complete_held(struct mpi_request *r, int32_t *status, int32_t *handle);

/* An error that the library has not told the handler of the communicator. Returns it. */
STUB_HIDDEN int message_failed(int32_t comm, int error);

/* ---- in front of the crossing ---- */

/* In a guarded body: one that is not active, with its handle and nothing else. NULL: there is no memory. */
STUB_HIDDEN struct mpi_request *request_new(unsigned index, int32_t real, int kind);

/* In a guarded body, of a call that has given out a request that is none of a message. */
STUB_HIDDEN int32_t request_given(unsigned index, int32_t real, int own_op);

/* The same of a call whose request a restart makes again. NULL: there is no memory. */
STUB_HIDDEN struct mpi_request *request_with_origin(unsigned index, int32_t real, int kind);
/* Before anything is kept in it: room for so many bytes of arrays, and objects. 0 or -1. */
STUB_HIDDEN int origin_reserve(struct mpi_origin *o, uint64_t bytes, uint32_t objects);
/* It uses @object, a datatype or an operation, until it is given back. */
STUB_HIDDEN void origin_use(struct mpi_origin *o, struct mpi_object *object);
/* @size bytes at @from are copied: where to. */
STUB_HIDDEN void *origin_copy(struct mpi_origin *o, const void *from, uint64_t size);

/* ---- message_queue.c ---- */

/* In front of the crossing: memory for so many bytes, and back. NULL: there is none. */
STUB_HIDDEN struct mpi_message *queue_memory(uint64_t size);
STUB_HIDDEN void queue_memory_unused(struct mpi_message *message);
/* The first in a step. */
STUB_HIDDEN struct mpi_message *queue_memory_in_step(uint64_t size);
/* The latter in a step or a guarded body. */
STUB_HIDDEN void queue_give_back(struct mpi_message *message);

/* In a step: the oldest message that was received for a checkpoint, on the communicator of @counts, which a
 * receive from @source with @tag is to get. NULL: none. If @take, it is taken out. */
STUB_HIDDEN struct mpi_message *queue_match(
	struct mpi_count *counts, int source, int tag, int take);
/* What was taken out is not received after all. */
STUB_HIDDEN void queue_put_back(struct mpi_count *counts, struct mpi_message *message);
/* Put it into the program's buffer, and its memory back. The result of a receive, which no handler has been
 * told. */
STUB_HIDDEN int queue_deliver(
	struct mpi_message *message, const struct message_call *c, int32_t *status);
/* What a probe says of it. */
STUB_HIDDEN void queue_status(const struct mpi_message *message, int32_t *status);
/* In a guarded body: a communicator is freed. */
STUB_HIDDEN void queue_drop(struct mpi_count *counts);

#endif
