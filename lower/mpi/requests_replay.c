/*
 * requests_replay.c - what has been sent is received before a checkpoint is complete. So at a restart there are no
 * sends under way, and of receives those only whose messages have not been sent yet.
 */
#include "lower/mpi/requests_replay.h"

#include <stdlib.h>

#include "lower/mpi/functions.h"
#include "lower/mpi/mpi_objects.h"
#include "lower/runtime.h"

static int is_of_message(const struct mpi_request *r)
{
	return r->kind == MPI_SEND || r->kind == MPI_RECEIVE ||
	       r->kind == MPI_MATCHED_RECEIVE || r->kind == MPI_MATCHED_MESSAGE;
}

static int is_under_way(const struct mpi_request *r)
{
	return (r->active && !r->held) || (r->kind == MPI_MATCHED_MESSAGE && !r->message);
}

/* ---- a checkpoint ---- */

static int check_request(struct mpi_state *s, struct mpi_request *r)
{
	const struct mpi_object *comm = mpi_comm(s, r->comm);

	if (r->own_op && is_under_way(r))
		return agent_fail_for(LOWER_AGAIN, "it is in a nonblocking reduction by a "
						   "function of its own, which would "
						   "be called while the program stands still");
	/* Another communicator may have the handle and the counts of a freed one. */
	if ((!is_of_message(r) && r->kind != MPI_PERSISTENT_COLLECTIVE) ||
		(comm && comm->count == r->counts &&
			(!r->counts || r->counts->number == r->number)))
		return 0;
	/* The program may not have looked at it since it was sent. */
	if (r->kind == MPI_SEND && is_under_way(r))
		request_look(r);
	if (is_under_way(r))
		return agent_fail_for(LOWER_AGAIN, "it has a message under way on a "
						   "communicator that it has freed");
	return r->persistent
		       ? agent_fail("it has a persistent request on a communicator that it "
				    "has freed, which cannot be saved")
		       : 0;
}

int requests_check(struct mpi_state *s)
{
	struct mpi_messages *m = s->messages;

	for (uint32_t i = 0; i < m->used; i++)
		if (mpi_request_at(m, i)->kind && check_request(s, mpi_request_at(m, i)))
			return -1;
	return 0;
}

/* ---- a restart ---- */

static int make_persistent(struct mpi_state *s, struct mpi_request *r)
{
	static const char *const names[] = {[MPI_STANDARD] = "MPI_Send_init",
		[MPI_BUFFERED] = "MPI_Bsend_init",
		[MPI_READY] = "MPI_Rsend_init",
		[MPI_SYNCHRONOUS] = "MPI_Ssend_init"};
	int (*const inits[])(void *, int, int, int, int, int, int *) = {
		[MPI_STANDARD] = mpi.Send_init,
		[MPI_BUFFERED] = mpi.Bsend_init,
		[MPI_READY] = mpi.Rsend_init,
		[MPI_SYNCHRONOUS] = mpi.Ssend_init};
	int type = mpi_real(s, r->datatype), comm = mpi_real(s, r->comm);

	if (r->count > INT32_MAX)
		return agent_fail("it has a persistent request of a large count, which cannot "
				  "be made again");
	if (r->kind == MPI_RECEIVE)
		return MPI_DO(Recv_init, r->buffer, (int)r->count, type, r->peer, r->tag, comm,
			&r->real);
	return mpi_failed(names[r->mode], inits[r->mode](r->buffer, (int)r->count, type,
						  r->peer, r->tag, comm, &r->real));
}

static int post_receive(struct mpi_state *s, struct mpi_request *r)
{
	int type = mpi_real(s, r->datatype), comm = mpi_real(s, r->comm);

	if (r->persistent)
		return MPI_DO(Start, &r->real);
	if (r->count <= INT32_MAX)
		return MPI_DO(
			Irecv, r->buffer, (int)r->count, type, r->peer, r->tag, comm, &r->real);
	return mpi.Irecv_c ? MPI_DO(Irecv_c, r->buffer, r->count, type, r->peer, r->tag, comm,
				     &r->real)
			   : agent_fail("the MPI library has no MPI_Irecv_c");
}

static int by_order(const void *a, const void *b)
{
	const struct mpi_request *x = *(struct mpi_request *const *)a;
	const struct mpi_request *y = *(struct mpi_request *const *)b;

	return x->posted < y->posted ? -1 : x->posted > y->posted;
}

static int post_receives(struct mpi_state *s, struct mpi_request **receives, uint32_t count)
{
	qsort(receives, count, sizeof(*receives), by_order);
	for (uint32_t i = 0; i < count; i++)
		if (post_receive(s, receives[i]))
			return -1;
	return 0;
}

int requests_make(struct mpi_state *s)
{
	struct mpi_messages *m = s->messages;
	struct mpi_request **receives = calloc(m->used + 1ul, sizeof(*receives));
	uint32_t count = 0;
	int failed = !receives;

	if (failed)
		agent_fail("no memory for %u requests", m->used);
	m->self = 0;
	for (uint32_t i = 0; i < m->used && !failed; i++) {
		struct mpi_request *r = mpi_request_at(m, i);

		if (!is_of_message(r))
			continue;
		r->real = MPI_REQUEST_NULL;
		r->real_comm = mpi_real(s, r->comm);
		if (r->persistent)
			failed = make_persistent(s, r);
		if (r->kind == MPI_RECEIVE && is_under_way(r))
			receives[count++] = r;
	}
	if (!failed)
		failed = origins_make(s) || post_receives(s, receives, count);
	free(receives);
	return failed ? -1 : 0;
}
