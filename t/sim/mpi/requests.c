/* Requests, and what is asked of them: what is complete is seen late. */
#include <stdlib.h>
#include <string.h>

#include "messages.h"

struct request *sim_requests;

struct request *request_new(int kind, struct comm *comm)
{
	static uint64_t id;
	struct request *r = calloc(1, sizeof(*r)), **at = &sim_requests;

	if (!r)
		sim_fatal("no memory for a request");
	r->kind = kind;
	r->id = ++id;
	r->comm = comm->handle;
	r->status = (MPI_Status){.MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG};
	while (*at)
		at = &(*at)->next;
	*at = r;
	return r;
}

void request_done(struct request *r)
{
	r->done = true;
	r->seen = sim_later();
}

void request_drop(struct request *r)
{
	struct request **at = &sim_requests;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	collective_drop(r->collective);
	if (r->handle)
		handle_drop(REQUEST, r->handle);
	free(r);
}

void requests_sweep(void)
{
	for (struct request *r = sim_requests, *next; r; r = next) {
		next = r->next;
		if (r->kind == SENDS && !r->done && r->sent && r->matched)
			request_done(r);
		if (r->freed && r->done)
			request_drop(r);
	}
}

/* ---- complete ---- */

/* What has been seen once stays so. */
static bool is_complete(struct request *r)
{
	if (!r->observed)
		r->observed = r->done && sim_seen(r->seen);
	return r->observed;
}

static struct request *find(MPI_Request request)
{
	struct request *r = handle_find(REQUEST, request);

	if (!r || r->freed)
		sim_fatal("0x%x is no request", request);
	return r;
}

static void tell(const MPI_Status *from, MPI_Status *status)
{
	if (status == MPI_STATUS_IGNORE)
		return;
	memcpy(status, from, offsetof(MPI_Status, MPI_ERROR));
}

static void tell_empty(MPI_Status *status)
{
	static const MPI_Status empty = {.MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG};

	tell(&empty, status);
}

/* The error; no handler is told. */
static int finish(MPI_Request *request, MPI_Status *status)
{
	struct request *r = find(*request);
	int error = r->error;

	tell(&r->status, status);
	request_drop(r);
	*request = MPI_REQUEST_NULL;
	return error;
}

static MPI_Status *status_at(MPI_Status *statuses, int i)
{
	return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

static int test(MPI_Request *request, int *flag, MPI_Status *status)
{
	struct comm *comm;

	*flag = 1;
	if (*request == MPI_REQUEST_NULL) {
		tell_empty(status);
		return 0;
	}
	*flag = is_complete(find(*request));
	comm = comm_find(find(*request)->comm);
	return *flag ? comm_failed(comm, finish(request, status)) : 0;
}

static int test_all(int count, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
	int failed = 0;

	*flag = 1;
	for (int i = 0; i < count; i++)
		if (requests[i] != MPI_REQUEST_NULL && !is_complete(find(requests[i])))
			*flag = 0;
	for (int i = 0; *flag && i < count; i++) {
		MPI_Status *status = status_at(statuses, i);
		int error = 0;

		if (requests[i] == MPI_REQUEST_NULL)
			tell_empty(status);
		else
			error = finish(&requests[i], status);
		failed |= error;
		if (status != MPI_STATUS_IGNORE)
			status->MPI_ERROR = error;
	}
	return comm_failed(NULL, failed ? MPI_ERR_IN_STATUS : 0);
}

static int test_any(int count, MPI_Request *requests, int *which, int *flag, MPI_Status *status)
{
	int first = count ? (int)sim_chance(count) : 0;

	*flag = 1;
	*which = MPI_UNDEFINED;
	for (int k = 0; k < count; k++) {
		int i = (first + k) % count;

		if (requests[i] == MPI_REQUEST_NULL)
			continue;
		*flag = is_complete(find(requests[i]));
		if (*flag) {
			*which = i;
			return comm_failed(NULL, finish(&requests[i], status));
		}
	}
	if (*flag)
		tell_empty(status);
	return 0;
}

static int test_some(
	int count, MPI_Request *requests, int *complete, int *which, MPI_Status *statuses)
{
	int active = 0, failed = 0;

	*complete = 0;
	for (int i = 0; i < count; i++) {
		MPI_Status *status = status_at(statuses, *complete);
		int error;

		if (requests[i] == MPI_REQUEST_NULL)
			continue;
		active++;
		if (!is_complete(find(requests[i])))
			continue;
		error = finish(&requests[i], status);
		failed |= error;
		if (status != MPI_STATUS_IGNORE)
			status->MPI_ERROR = error;
		which[(*complete)++] = i;
	}
	if (!active)
		*complete = MPI_UNDEFINED;
	return comm_failed(NULL, failed ? MPI_ERR_IN_STATUS : 0);
}

/* ---- calls ---- */

#define LOOK(name, parameters, ...)                                                            \
	int name parameters                                                                    \
	{                                                                                      \
		int r;                                                                         \
                                                                                               \
		sim_lock();                                                                    \
		sim_progress();                                                                \
		r = __VA_ARGS__;                                                               \
		sim_unlock();                                                                  \
		return r;                                                                      \
	}

LOOK(MPI_Test, (MPI_Request * request, int *flag, MPI_Status *status),
	test(request, flag, status))
LOOK(MPI_Testall, (int count, MPI_Request *requests, int *flag, MPI_Status *statuses),
	test_all(count, requests, flag, statuses))
LOOK(MPI_Testany, (int count, MPI_Request *requests, int *which, int *flag, MPI_Status *status),
	test_any(count, requests, which, flag, status))
LOOK(MPI_Testsome,
	(int count, MPI_Request *requests, int *complete, int *which, MPI_Status *statuses),
	test_some(count, requests, complete, which, statuses))

static int get_status(MPI_Request request, int *flag, MPI_Status *status)
{
	*flag = request == MPI_REQUEST_NULL || is_complete(find(request));
	if (*flag && request != MPI_REQUEST_NULL)
		tell(&find(request)->status, status);
	return 0;
}

LOOK(MPI_Request_get_status, (MPI_Request request, int *flag, MPI_Status *status),
	get_status(request, flag, status))

static int free_request(MPI_Request *request)
{
	struct request *r = find(*request);

	handle_drop(REQUEST, r->handle);
	r->handle = 0;
	r->freed = true;
	*request = MPI_REQUEST_NULL;
	return 0;
}

LOOK(MPI_Request_free, (MPI_Request * request), free_request(request))

static int cancel(const MPI_Request *request)
{
	struct request *r = find(*request);

	if (r->kind == RECEIVES && !r->matched && !r->done) {
		r->cancelled = true;
		r->status.count_hi_and_cancelled = 1;
		request_done(r);
	}
	return 0;
}

LOOK(MPI_Cancel, (MPI_Request * request), cancel(request))

/* Calls that wait are loops of the above. */

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
	int flag = 0, r = 0;

	while (!flag && !r)
		r = MPI_Test(request, &flag, status);
	return r;
}

int MPI_Waitall(int count, MPI_Request *requests, MPI_Status *statuses)
{
	int flag = 0, r = 0;

	while (!flag && !r)
		r = MPI_Testall(count, requests, &flag, statuses);
	return r;
}

int MPI_Waitany(int count, MPI_Request *requests, int *which, MPI_Status *status)
{
	int flag = 0, r = 0;

	while (!flag && !r)
		r = MPI_Testany(count, requests, which, &flag, status);
	return r;
}
