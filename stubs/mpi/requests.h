/*
 * requests.h - the program's requests (shared/mpi/messages.h), and the steps of calls that are about messages.
 *
 * A thread can be stopped for a checkpoint only outside of the lower half. So no call waits there: it is made of
 * steps, each of which begins something or looks whether it is complete, and returns. In between the thread is
 * in code of the upper half that is not guarded, and all that is under way is in the table of requests. A step
 * runs behind the crossing, on the lower half's FS base: nothing thread-local may be touched in it, and it calls the
 * real library by BELOW().
 */
#ifndef STUBS_MPI_REQUESTS_H
#define STUBS_MPI_REQUESTS_H

#include "shared/mpi/messages.h"
#include "shared/raw.h"
#include "stubs/mpi/handle_table.h"

typedef int MPI_Request, MPI_Message, MPI_Status;

#define BELOW(name, parameters) ((int(*) parameters)mpi_targets[INDEX_##name])

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
	struct message_call *other;      /* the receive that goes with a send */
	/* Calls about several requests: `handle` and `status` are arrays. */
	int n, *index_out, *indices;
	int32_t *reals, *statuses; /* what the library is given */
};

extern STUB_HIDDEN struct mpi_messages mpi_messages;

/* Assembly: make c->step behind the crossing, or @body in front of it, guarded. */
STUB_HIDDEN int mpi_step(struct message_call *c);
STUB_HIDDEN int mpi_guarded(void *argument, int (*body)(void *argument));

/* A call that is not to wait; and one that is, for @peer of its communicator. The result of the call. */
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

/* The real request of @r, now @real, is complete: count what it has received; the program holds it as *@handle. */
STUB_HIDDEN void request_complete(
	struct mpi_request *r, int32_t real, const int32_t *status, int32_t *handle);
/* The same of one that is held, with its result for the program. */
STUB_HIDDEN int request_complete_held(struct mpi_request *r, int32_t *status, int32_t *handle);

/* An error that the library has not told the handler of the communicator. Returns it. */
STUB_HIDDEN int message_failed(int32_t comm, int error);

/* ---- in front of the crossing ---- */

/* In a guarded body, of a call that has given out a request that is none of a message. */
STUB_HIDDEN int32_t request_given(unsigned index, int32_t real, int own_op);

/* ---- message_queue.c ---- */

/* In a step: the oldest message that was received for a checkpoint, on the communicator of @counts, which a
 * receive from @source with @tag is to get. NULL: none. If @take, it is taken out. */
STUB_HIDDEN struct mpi_message *queue_match(
	struct mpi_count *counts, int source, int tag, int take);
/* Put it into the program's buffer, and its memory back. The result of a receive, which no handler has been
 * told. */
STUB_HIDDEN int queue_deliver(
	struct mpi_message *message, const struct message_call *c, int32_t *status);
/* What a probe says of it. */
STUB_HIDDEN void queue_status(const struct mpi_message *message, int32_t *status);
/* In a guarded body: a communicator is freed. */
STUB_HIDDEN void queue_drop(struct mpi_count *counts);

#endif
