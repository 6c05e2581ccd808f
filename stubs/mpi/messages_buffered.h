/* messages_buffered.h - buffered sends, which are the stub's own (messages_buffered.c). In front of the crossing. */
#ifndef STUBS_MPI_MESSAGES_BUFFERED_H
#define STUBS_MPI_MESSAGES_BUFFERED_H

#include "stubs/mpi/messages.h"

/* The call's result. @c is as the library's function would be given it, which is called if the program has no buffer. */
STUB_HIDDEN int message_buffered(struct message_call *c);

/* The same of MPI_Start for @r, whose handle is *c->handle; -1: it is none of ours. */
STUB_HIDDEN int request_start_buffered(const struct mpi_request *r, struct message_call *c);

/* Wait until all have been sent, as the function @index does. */
STUB_HIDDEN void buffered_await(unsigned index);

#endif
