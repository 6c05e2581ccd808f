/* messages_buffered.h - buffered sends, which are the stub's own (messages_buffered.c), and their buffers (buffers.c). In front of the crossing, if
 * nothing else is said. */
#ifndef STUBS_MPI_MESSAGES_BUFFERED_H
#define STUBS_MPI_MESSAGES_BUFFERED_H

#include "stubs/mpi/messages.h"

/* The call's result. @c is as the library's function would be given it, which is called if the program has no buffer. */
STUB_HIDDEN int message_buffered(struct message_call *c);

/* The same of MPI_Start for @r, whose handle is *c->handle; -1: it is none of ours. */
STUB_HIDDEN int request_start_buffered(const struct mpi_request *r, struct message_call *c);

/* A step of a call whose message lies in c->packed, for a send in c->in without a request of the program's. When it is done, c->packed is what is of
 * no use to it any more, or NULL. */
STUB_HIDDEN int buffered_send(struct message_call *c);
/* In a step: how many sends in @b are under way. */
STUB_HIDDEN uint32_t buffered_under_way(const struct mpi_buffer *b);

/* Wait until all in @b have been sent, NULL: in any buffer, as the function @index does. */
STUB_HIDDEN void buffered_await(unsigned index, struct mpi_buffer *b);

/* In a step: whether any in @b is still under way that was begun before @posted (struct mpi_request). */
STUB_HIDDEN int buffered_before(const struct mpi_buffer *b, uint64_t posted);

/* In a guarded body: one that is all zero; NULL: there is no memory. And back: what is in it is sent all the same. */
STUB_HIDDEN struct mpi_buffer *buffer_new(void);
STUB_HIDDEN void buffer_end(struct mpi_buffer *b);

/* The buffer of what is sent on @comm, NULL: on none that is known; NULL if the program has attached none. */
STUB_HIDDEN struct mpi_buffer *buffer_for(const struct mpi_object *comm);

/* Whether @r, a flush, is not complete yet. If it is, it is held. In a step. */
STUB_HIDDEN int flush_is_withheld(struct mpi_request *r);

/* @count elements at @from as MPI_Pack_c packs them, by MPI_Pack where the library has no functions for large counts. *packed:
 * bytes of the @size at @to. An error of MPI; the error handler of @comm has been called. */
STUB_HIDDEN int buffered_pack(const void *from, int64_t count, int type, void *to, int64_t size,
	int64_t *packed, int comm);

#endif
