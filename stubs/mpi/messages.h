/* messages.h - calls that programs make about messages, and what their files share. */
#ifndef STUBS_MPI_MESSAGES_H
#define STUBS_MPI_MESSAGES_H

#include "stubs/mpi/requests.h"

/* A function of the API that is not guarded as a whole: a thread may be stopped in it. */
#define OPEN(name, parameters)                                                                 \
	STUB_HIDDEN int open_##name parameters;                                                \
	int open_##name parameters

/* In a step: let @r, a receive that is about to begin, have a message that was received for a checkpoint. 0: none
 * is there. */
STUB_HIDDEN int request_receive_queued(struct mpi_request *r, const struct message_call *c);
/* The same of @m, which has been taken out of its queue. */
STUB_HIDDEN void request_receive_message(
	struct mpi_request *r, const struct message_call *c, struct mpi_message *m);

static inline struct mpi_count *message_counts(const struct message_call *c)
{
	const struct mpi_object *comm = comm_object(c->comm);

	return comm ? comm->count : NULL;
}

/* In steps: begin the message of @c; the library's request of it, or the result of the call. */
STUB_HIDDEN int message_begin_send(const struct message_call *c, int32_t *real);
STUB_HIDDEN int message_begin_receive(const struct message_call *c, int32_t *real);
/* @c, a receive, gets @m, which was received for a checkpoint and has been taken out of its queue. */
STUB_HIDDEN void message_deliver(struct message_call *c, struct mpi_message *m);
/* The message of @c is not complete in its first step: @r is its record from now on. STEP_AGAIN. */
STUB_HIDDEN int message_under_way(
	struct message_call *c, struct mpi_request *r, int kind, int32_t real);
/* Look at one of the requests of @c, so often or until it is complete. */
STUB_HIDDEN void message_look(struct message_call *c, int which, int looks);

/*
 * In a step: until they are restored the library calls no error handler of MPI_COMM_WORLD and of @comm. Handlers are
 * set for all threads: where there are several, two of them could lose the program's, so then they are called as ever.
 */
struct mpi_handlers {
	int quiet;
	int32_t world, comm;
};
STUB_HIDDEN void handlers_silence(struct mpi_handlers *h, int32_t comm);
STUB_HIDDEN void handlers_restore(const struct mpi_handlers *h, int32_t comm);

/* In a step: let the library make progress, where it is given no request to look at. */
STUB_HIDDEN void message_progress(void);

/* A step: of a call that waits for its requests, until none is under way. */
STUB_HIDDEN int step_look(struct message_call *c);

#endif
