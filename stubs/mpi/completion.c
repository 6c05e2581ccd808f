/*
 * completion.c - waits and tests. A wait is a test that is made until it says that something is complete. What the
 * lower half has completed for a checkpoint is `held` in the request's record, and goes first.
 */
#include <stdlib.h>

#include "stubs/mpi/messages.h"

#include "mpi.index.h"

static int32_t *each_status(int32_t *statuses, int i)
{
	return statuses == STATUS_IGNORE ? STATUS_IGNORE : statuses + (long)MPI_STATUS_INTS * i;
}

static void found_nothing(const struct message_call *c)
{
	mpi_messages.poll_call = c->index;
	mpi_messages.polls++;
}

/* A step of a call that waits, or that has a flag and looks once. @look: 1: something is complete, or has failed. */
static int step_by(struct message_call *c, int (*look)(struct message_call *c, int looks))
{
	int complete = look(c, c->flag ? 1 : STEP_LOOKS);

	if (!c->flag)
		return complete ? STEP_DONE : STEP_AGAIN;
	*c->flag = complete && !c->result;
	if (!complete)
		found_nothing(c);
	return STEP_DONE;
}

/* ---- one request ---- */

static int test_real(int32_t *real, int *flag, int32_t *status)
{
	return LOWER_CALL(MPI_Test, (int32_t *, int *, int32_t *))(real, flag, status);
}

static int test_ours(struct message_call *c, struct mpi_request *r, int looks)
{
	int32_t own[MPI_STATUS_INTS], real;
	int32_t *status = c->status == STATUS_IGNORE ? own : c->status;
	int flag = 0, send_error;

	for (; r->pair && !request_is_single(r); looks--)
		if (looks == 1) {
			c->requests[0] = r->pair;
			return 0;
		}
	c->requests[0] = r;
	while (!request_is_plain(r) && request_is_withheld(r))
		if (!--looks) {
			message_progress();
			return 0;
		}
	/* Not before: until then another thread may begin it, or complete it. */
	real = r->real;
	send_error = r->send_error;
	if (r->held) {
		c->result = request_complete_held(r, c->status, c->handle);
		flag = 1;
	}
	while (looks-- && !flag && !c->result) {
		c->result = test_real(&real, &flag, status);
		if (flag || real != r->real)
			request_complete(r, real, status, c->handle);
	}
	if (flag && !c->result)
		c->result = send_error;
	return flag || c->result;
}

static int test_one(struct message_call *c, int looks)
{
	struct mpi_request *r = request_of(*c->handle);
	int flag = 0;

	if (r)
		return test_ours(c, r, looks);
	c->result = test_real(c->handle, &flag, c->status);
	return flag || c->result;
}

static int step_one(struct message_call *c)
{
	return step_by(c, test_one);
}

OPEN(MPI_Wait, (int *request, int *status))
{
	struct message_call c;

	message_call_completes(&c, step_one, INDEX_MPI_Wait, request, NULL, status);
	return message_wait(&c);
}

OPEN(MPI_Test, (int *request, int *flag, int *status))
{
	struct message_call c;

	message_call_completes(&c, step_one, INDEX_MPI_Test, request, flag, status);
	return message_once(&c);
}

/* ---- several ---- */

#define FEW 32

/* Memory for what the library is given: of the caller's stack if they are few. */
struct arrays {
	int32_t few_reals[FEW], few_statuses[FEW * MPI_STATUS_INTS];
	void *more;
};

static int make_arrays(struct message_call *c, struct arrays *a)
{
	size_t n = c->n > 0 ? c->n : 0;

	a->more = NULL;
	c->reals = a->few_reals;
	c->statuses = a->few_statuses;
	if (n <= FEW)
		return 0;
	a->more = malloc(n * (1 + MPI_STATUS_INTS) * sizeof(int32_t));
	if (!a->more)
		return MPI_ERR_OTHER;
	c->reals = a->more;
	c->statuses = c->reals + n;
	return 0;
}

static int wait_for_several(struct message_call *c, int waits)
{
	struct arrays a;
	int r = make_arrays(c, &a);

	if (!r)
		r = waits ? message_wait(c) : message_once(c);
	free(a.more);
	return r;
}

static int is_held(const struct mpi_request *r)
{
	return r && r->held && !r->pair;
}

/*
 * MPI_Testall of MPICH 4.0.2 says of a persistent collective call, and of a partitioned request, that is complete that it has
 * failed, and MPI_Waitall, which is made of it here, does not: so they are tested one by one, when all others are complete.
 */
static int is_apart(const struct mpi_request *r)
{
	return r && !r->held &&
	       (r->kind == MPI_PERSISTENT_COLLECTIVE || r->kind == MPI_PARTITIONED_BELOW);
}

/* The library's requests; what is held is none of its, and what a send or a file holds back is not to be complete. The
 * number of requests that are held. */
static int give_reals(struct message_call *c)
{
	int held = 0;

	c->requests[0] = NULL;
	c->paired = c->apart = 0;
	for (int i = 0; i < c->n; i++) {
		struct mpi_request *r = request_of(c->handle[i]);
		int single;

		if (r && request_is_plain(r)) {
			c->reals[i] = r->real;
			if (r->active && !c->requests[0])
				c->requests[0] = r;
			continue;
		}
		single = !r || (request_is_single(r) && !request_is_withheld(r));
		c->reals[i] = !r                   ? c->handle[i]
			      : r->held || !single ? MPI_REQUEST_NULL
						   : r->real;
		held += is_held(r);
		c->paired += !single;
		c->apart += is_apart(r);
		if (r && r->active && !c->requests[0])
			c->requests[0] = r->pair ? r->pair : r;
	}
	return held;
}

/* Request number @i is complete, with the library's own status @status. An error of the send that it had, which no
 * status tells. */
static int complete_one(struct message_call *c, int i, const int32_t *status)
{
	struct mpi_request *r = request_of(c->handle[i]);
	int error;

	if (!r) {
		c->handle[i] = c->reals[i];
		return 0;
	}
	error = r->send_error;
	request_complete(r, c->reals[i], status, &c->handle[i]);
	return error;
}

/* A held one of several: its error is told by its status only, which the library has not set. */
static void complete_one_held(
	struct message_call *c, struct mpi_request *r, int i, int32_t *status)
{
	int error = r->error ? r->error : r->send_error;

	r->error = 0;
	(void)request_complete_held(r, status, &c->handle[i]);
	if (status != STATUS_IGNORE)
		status[MPI_STATUS_ERROR] = error;
}

/* As MPICH has it, whose communicators they may be. */
static void fail_in_status(struct message_call *c)
{
	c->result = message_failed(COMM_WORLD, MPI_ERR_IN_STATUS);
}

/* Number @i of @n statuses is to tell an error that the library has not told: unless there are some, it has set no
 * errors in any. 1: there is one. */
static int fail_one(
	const struct message_call *c, int32_t *statuses, int i, int n, int failed, int error)
{
	if (!error)
		return 0;
	for (int k = 0; k < n && !failed && !c->result; k++)
		each_status(statuses, k)[MPI_STATUS_ERROR] = 0;
	each_status(statuses, i)[MPI_STATUS_ERROR] = error;
	return 1;
}

/* ---- all ---- */

static int has_held_failed(const struct message_call *c)
{
	for (int i = 0; i < c->n; i++) {
		const struct mpi_request *r = request_of(c->handle[i]);

		if (is_held(r) && (r->error || r->send_error))
			return 1;
	}
	return 0;
}

/* None of the library's own requests has failed, so it has set no errors in their statuses. */
static void clear_errors(const struct message_call *c)
{
	for (int i = 0; i < c->n && c->status != STATUS_IGNORE; i++)
		each_status(c->status, i)[MPI_STATUS_ERROR] = 0;
}

static void complete_held_of_all(struct message_call *c)
{
	int failed = !c->result && has_held_failed(c);

	if (failed)
		clear_errors(c);
	for (int i = 0; i < c->n; i++) {
		struct mpi_request *r = request_of(c->handle[i]);

		if (is_held(r))
			complete_one_held(c, r, i, each_status(c->status, i));
	}
	if (failed)
		fail_in_status(c);
}

static int is_complete(const struct mpi_request *r)
{
	int32_t status[MPI_STATUS_INTS];
	int flag = 0;

	return !r->active ||
	       LOWER_CALL(MPI_Request_get_status, (int32_t, int *, int32_t *))(
		       r->real, &flag, status) ||
	       flag;
}

/* 0: one of them is not complete. */
static int set_apart(struct message_call *c)
{
	int complete = 1;

	for (int i = 0; i < c->n; i++) {
		const struct mpi_request *r = request_of(c->handle[i]);

		if (!is_apart(r))
			continue;
		c->reals[i] = MPI_REQUEST_NULL;
		complete = complete && is_complete(r);
	}
	return complete;
}

static int complete_apart(struct message_call *c, struct mpi_request *r, int i, int32_t *status)
{
	int flag = 0, error = 0;

	c->reals[i] = r->real;
	if (r->active)
		error = test_real(&c->reals[i], &flag, status);
	request_complete(r, c->reals[i], status, &c->handle[i]);
	return error;
}

/* Statuses are ours where the program wants none; of requests that the library does not have, it leaves them. */
static void complete_all(struct message_call *c, int32_t *statuses)
{
	int failed = 0, error;

	for (int i = 0; i < c->n; i++) {
		int32_t *status = statuses + (long)MPI_STATUS_INTS * i;
		struct mpi_request *r = request_of(c->handle[i]);

		if (is_held(r))
			continue;
		if (!is_apart(r) && c->result && status[MPI_STATUS_ERROR] == MPI_ERR_PENDING)
			continue;
		error = is_apart(r) ? complete_apart(c, r, i, status)
				    : complete_one(c, i, status);
		failed |= fail_one(c, statuses, i, c->n, failed, error);
	}
	if (failed && !c->result)
		fail_in_status(c);
}

static int test_all(struct message_call *c, int looks)
{
	int32_t *statuses = c->status == STATUS_IGNORE ? c->statuses : c->status;
	int held = give_reals(c), flag = 0;

	if (c->paired || (c->apart && !set_apart(c))) {
		message_progress();
		return 0;
	}
	while (looks-- && !flag && !c->result)
		c->result = LOWER_CALL(MPI_Testall, (int, int32_t *, int *, int32_t *))(
			c->n, c->reals, &flag, statuses);
	if (!flag && c->result != MPI_ERR_IN_STATUS)
		return c->result != 0;
	complete_all(c, statuses);
	if (held)
		complete_held_of_all(c);
	return 1;
}

static int step_all(struct message_call *c)
{
	return step_by(c, test_all);
}

OPEN(MPI_Waitall, (int n, int *requests, int *statuses))
{
	struct message_call c;

	message_call_completes(&c, step_all, INDEX_MPI_Waitall, requests, NULL, statuses);
	c.n = n;
	return wait_for_several(&c, 1);
}

OPEN(MPI_Testall, (int n, int *requests, int *flag, int *statuses))
{
	struct message_call c;

	message_call_completes(&c, step_all, INDEX_MPI_Testall, requests, flag, statuses);
	c.n = n;
	return wait_for_several(&c, 0);
}

/* ---- any ---- */

static int complete_any_held(struct message_call *c)
{
	int send_error;

	for (int i = 0; i < c->n; i++) {
		struct mpi_request *r = request_of(c->handle[i]);

		if (!is_held(r))
			continue;
		send_error = r->send_error;
		*c->index_out = i;
		c->result = request_complete_held(r, c->status, &c->handle[i]);
		if (!c->result)
			c->result = send_error;
		return 1;
	}
	return 0;
}

static int test_any(struct message_call *c, int looks)
{
	int32_t *status = c->status == STATUS_IGNORE ? c->statuses : c->status;
	int flag = 0, index = MPI_UNDEFINED, error = 0;

	if (give_reals(c) && complete_any_held(c))
		return 1;
	while (looks-- && !flag && !c->result)
		c->result = LOWER_CALL(MPI_Testany, (int, int32_t *, int *, int *, int32_t *))(
			c->n, c->reals, &index, &flag, status);
	/* Nothing was under way for the library. */
	if (c->paired && index == MPI_UNDEFINED) {
		flag = 0;
		message_progress();
	}
	if ((flag || c->result) && index >= 0 && index < c->n)
		error = complete_one(c, index, status);
	if (!c->result)
		c->result = error;
	*c->index_out = index;
	/* Of several, the others may be waited for as well. */
	if (c->n > 1)
		c->requests[0] = NULL;
	return flag || c->result;
}

static int step_any(struct message_call *c)
{
	return step_by(c, test_any);
}

OPEN(MPI_Waitany, (int n, int *requests, int *index, int *status))
{
	struct message_call c;

	message_call_completes(&c, step_any, INDEX_MPI_Waitany, requests, NULL, status);
	c.n = n;
	c.index_out = index;
	return wait_for_several(&c, 1);
}

OPEN(MPI_Testany, (int n, int *requests, int *index, int *flag, int *status))
{
	struct message_call c;

	message_call_completes(&c, step_any, INDEX_MPI_Testany, requests, flag, status);
	c.n = n;
	c.index_out = index;
	return wait_for_several(&c, 0);
}

/* ---- some ---- */

static int complete_some_held(struct message_call *c)
{
	int count = 0, failed = 0;

	for (int i = 0; i < c->n; i++) {
		struct mpi_request *r = request_of(c->handle[i]);

		if (!is_held(r))
			continue;
		failed |= r->error | r->send_error;
		complete_one_held(c, r, i, each_status(c->status, count));
		c->indices[count++] = i;
	}
	*c->index_out = count;
	if (failed)
		fail_in_status(c);
	return count;
}

static int test_some(struct message_call *c, int looks)
{
	int32_t *statuses = c->status == STATUS_IGNORE ? c->statuses : c->status;
	int count = 0, failed = 0;

	if (give_reals(c) && complete_some_held(c))
		return 1;
	while (looks-- && !count && !c->result)
		c->result = LOWER_CALL(MPI_Testsome, (int, int32_t *, int *, int *, int32_t *))(
			c->n, c->reals, &count, c->indices, statuses);
	if (c->paired && count == MPI_UNDEFINED) {
		count = 0;
		message_progress();
	}
	*c->index_out = count;
	for (int k = 0; k < count; k++)
		failed |= fail_one(c, statuses, k, count, failed,
			complete_one(c, c->indices[k], each_status(statuses, k)));
	if (failed && !c->result)
		fail_in_status(c);
	if (c->n > 1)
		c->requests[0] = NULL;
	return count || c->result;
}

static int step_waitsome(struct message_call *c)
{
	return test_some(c, STEP_LOOKS) ? STEP_DONE : STEP_AGAIN;
}

static int step_testsome(struct message_call *c)
{
	if (!test_some(c, 1))
		found_nothing(c);
	return STEP_DONE;
}

OPEN(MPI_Waitsome, (int n, int *requests, int *count, int *indices, int *statuses))
{
	struct message_call c;

	message_call_completes(&c, step_waitsome, INDEX_MPI_Waitsome, requests, NULL, statuses);
	c.n = n;
	c.index_out = count;
	c.indices = indices;
	return wait_for_several(&c, 1);
}

OPEN(MPI_Testsome, (int n, int *requests, int *count, int *indices, int *statuses))
{
	struct message_call c;

	message_call_completes(&c, step_testsome, INDEX_MPI_Testsome, requests, NULL, statuses);
	c.n = n;
	c.index_out = count;
	c.indices = indices;
	return wait_for_several(&c, 0);
}
