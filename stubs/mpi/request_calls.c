/*
 * request_calls.c - what programs do with requests besides waiting for them.
 */
#include "stubs/crossing/crossing.h"
#include "stubs/mpi/messages.h"

#include "mpi.index.h"

/* ---- given back, cancelled ---- */

/* Nobody hears of its error: the library, too, tells none of what is freed. */
static int test_quietly(const struct mpi_request *r, int32_t *real, int *flag, int32_t *status)
{
	struct mpi_handlers h;
	int error;

	handlers_silence(&h, r->comm);
	error = LOWER_CALL(MPI_Test, (int32_t *, int *, int32_t *))(real, flag, status);
	handlers_restore(&h, r->comm);
	return error;
}

/* Perhaps the message of @r has come. */
static void look_at_freed(struct mpi_request *r)
{
	int32_t status[MPI_STATUS_INTS] = {0}, real = r->real, ignored;
	int flag = r->held, persistent = r->persistent;

	/* One that has failed is as complete. */
	if (!flag)
		flag = test_quietly(r, &real, &flag, status) || flag;
	if (!flag)
		return;
	if (!r->held)
		request_complete(r, real, status, &ignored);
	else if (!persistent)
		request_give_back(r);
	if (!persistent)
		return;
	if (real != MPI_REQUEST_NULL)
		LOWER_CALL(MPI_Request_free, (int32_t *))(&real);
	request_give_back(r);
}

/*
 * Requests that the program has freed while the message was under way: it comes all the same, and is counted. By one
 * thread at a time, or two would give back the same request. Nothing else of a request is looked at before it
 * is known to be freed: until then it is another thread's, which may make another one of it.
 */
static void sweep_freed(void)
{
	static uint32_t sweeping;
	struct mpi_messages *m = &mpi_messages;

	if (__atomic_exchange_n(&sweeping, 1, __ATOMIC_ACQUIRE))
		return;
	for (uint32_t i = 0; i < m->used && m->freed; i++) {
		struct mpi_request *r = mpi_request_at(m, i);

		if (__atomic_load_n(&r->freed, __ATOMIC_ACQUIRE))
			look_at_freed(r);
	}
	__atomic_store_n(&sweeping, 0, __ATOMIC_RELEASE);
}

/* Whether it is to be known what becomes of it: a message may come, a send be cancelled, or a file be written. */
static int is_open(const struct mpi_request *r)
{
	return r->active && !r->held &&
	       (r->kind == MPI_RECEIVE || r->kind == MPI_MATCHED_RECEIVE ||
		       request_is_of_file(r) || (r->kind == MPI_SEND && r->cancelled));
}

static void leave_open(struct mpi_request *r)
{
	__atomic_add_fetch(&mpi_messages.freed, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&r->freed, 1, __ATOMIC_RELEASE);
}

/* The program is to complete it still, by a copy of its handle. */
static int is_to_complete(const struct mpi_request *r)
{
	return r->kind == MPI_GENERALIZED && !r->completed;
}

static int query_nothing(void *extra, int32_t *status)
{
	(void)extra;
	(void)status;
	return 0;
}

static int note_freed(void *extra)
{
	*(int *)extra = 1;
	return 0;
}

static int cancel_nothing(void *extra, int complete)
{
	(void)extra;
	(void)complete;
	return 0;
}

/*
 * In a step: whether the program has been told of a generalised request that it has freed before it was complete. MPICH
 * 4.0.2 tells it at once; MPICH 5 and Open MPI do when it is completed. One of our own shows it.
 */
static int tells_when_freed(void)
{
	int told = 0, was_told;
	int32_t real = 0, copy;

	if (LOWER_CALL(MPI_Grequest_start, (void *, void *, void *, void *, int32_t *))(
		    (void *)query_nothing, (void *)note_freed, (void *)cancel_nothing, &told,
		    &real) ||
		!real)
		return 1;
	copy = real;
	LOWER_CALL(MPI_Request_free, (int32_t *))(&real);
	was_told = told;
	LOWER_CALL(MPI_Grequest_complete, (int32_t))(copy);
	return was_told;
}

static int step_free(struct message_call *c)
{
	struct mpi_request *r = request_of(*c->handle);
	int32_t real;

	if (!r) {
		c->result = LOWER_CALL(MPI_Request_free, (int32_t *))(c->handle);
		return STEP_DONE;
	}
	/* Memory may go with it. */
	if (r->pair)
		leave_open(r->pair);
	r->pair = NULL;
	if (is_open(r)) {
		leave_open(r);
	} else if (is_to_complete(r)) {
		real = r->real;
		c->result = LOWER_CALL(MPI_Request_free, (int32_t *))(&real);
		if (c->result)
			return STEP_DONE;
		r->orphan = mpi_state.lower_is_openmpi || !tells_when_freed()
				    ? MPI_ORPHAN_UNTOLD
				    : MPI_ORPHAN_TOLD;
	} else {
		if (r->real != MPI_REQUEST_NULL)
			c->result = LOWER_CALL(MPI_Request_free, (int32_t *))(&r->real);
		if (c->result)
			return STEP_DONE;
		request_give_back(r);
	}
	*c->handle = MPI_REQUEST_NULL;
	if (mpi_messages.freed)
		sweep_freed();
	return STEP_DONE;
}

OPEN(MPI_Request_free, (int *request))
{
	struct message_call c = {
		.step = step_free, .index = INDEX_MPI_Request_free, .handle = request};

	return message_once(&c);
}

/* What is complete cannot be cancelled any more, and that is no error. */
static int step_cancel(struct message_call *c)
{
	struct mpi_request *r = request_of(*c->handle);

	if (!r)
		c->result = LOWER_CALL(MPI_Cancel, (int32_t *))(c->handle);
	else if (!r->held)
		c->result = LOWER_CALL(MPI_Cancel, (int32_t *))(&r->real);
	if (r && !c->result)
		r->cancelled = 1;
	return STEP_DONE;
}

OPEN(MPI_Cancel, (int *request))
{
	struct message_call c = {
		.step = step_cancel, .index = INDEX_MPI_Cancel, .handle = request};

	return message_once(&c);
}

/* ---- asked about ---- */

static void held_status(const struct mpi_request *r, int32_t *status)
{
	if (status != STATUS_IGNORE)
		for (int i = 0; i < MPI_STATUS_ERROR; i++)
			status[i] = r->status[i];
}

static int step_get_status(struct message_call *c)
{
	struct mpi_request *r = request_of(*c->handle);

	if (r && (request_is_withheld(r) || !request_is_single(r))) {
		*c->flag = 0;
		message_progress();
		mpi_messages.poll_call = c->index;
		mpi_messages.polls++;
		return STEP_DONE;
	}
	if (r && r->held) {
		held_status(r, c->status);
		*c->flag = 1;
		c->result = message_failed(r->comm, r->error);
		return STEP_DONE;
	}
	c->result = LOWER_CALL(MPI_Request_get_status, (int32_t, int *, int32_t *))(
		r ? r->real : *c->handle, c->flag, c->status);
	if (!c->result && !*c->flag) {
		mpi_messages.poll_call = c->index;
		mpi_messages.polls++;
	}
	return STEP_DONE;
}

static int get_status(unsigned index, int request, int *flag, int *status)
{
	struct message_call c = {.step = step_get_status,
		.index = index,
		.handle = &request,
		.flag = flag,
		.status = status};

	return message_once(&c);
}

OPEN(MPI_Request_get_status, (int request, int *flag, int *status))
{
	return get_status(INDEX_MPI_Request_get_status, request, flag, status);
}

static int *status_of(int *statuses, int i)
{
	return statuses == STATUS_IGNORE ? STATUS_IGNORE : statuses + (long)MPI_STATUS_INTS * i;
}

OPEN(MPI_Request_get_status_all, (int n, const int *requests, int *flag, int *statuses))
{
	int r = 0;

	*flag = 1;
	for (int i = 0; i < n && *flag && !r; i++)
		r = get_status(INDEX_MPI_Request_get_status_all, requests[i], flag,
			status_of(statuses, i));
	return r;
}

OPEN(MPI_Request_get_status_any,
	(int n, const int *requests, int *index, int *flag, int *status))
{
	int r = 0, any = 0;

	*flag = 0;
	*index = MPI_UNDEFINED;
	for (int i = 0; i < n && !r; i++) {
		if (requests[i] == MPI_REQUEST_NULL)
			continue;
		any = 1;
		r = get_status(INDEX_MPI_Request_get_status_any, requests[i], flag, status);
		if (*flag) {
			*index = i;
			return r;
		}
	}
	return r || any ? r
			: get_status(INDEX_MPI_Request_get_status_any, MPI_REQUEST_NULL, flag,
				  status);
}

OPEN(MPI_Request_get_status_some,
	(int n, const int *requests, int *count, int *indices, int *statuses))
{
	int r = 0, any = 0;

	*count = 0;
	for (int i = 0; i < n && !r; i++) {
		int flag = 0;

		if (requests[i] == MPI_REQUEST_NULL)
			continue;
		any = 1;
		r = get_status(INDEX_MPI_Request_get_status_some, requests[i], &flag,
			status_of(statuses, *count));
		if (flag)
			indices[(*count)++] = i;
	}
	if (!any)
		*count = MPI_UNDEFINED;
	return r;
}
