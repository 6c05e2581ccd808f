/*
 * window_operations.c - calls that reach the memory of other ranks. The library makes them as they are, in its passive
 * epoch; whether the program is in an epoch is seen here.
 */
#include <limits.h>

#include "stubs/crossing/crossing.h"
#include "stubs/mpi/messages.h"
#include "stubs/mpi/windows.h"

#include "mpi.index.h"

/* What is wrong with @target the library says. */
static inline int may_reach(struct mpi_window *w, int target)
{
	int known = target >= 0 && target < w->size;

	switch (w->access) {
	case MPI_NO_ACCESS:
		return 0;
	case MPI_FENCED:
		w->access = MPI_FENCE_ACCESS;
		break;
	case MPI_STARTED:
		return !known || w->targets[target].started;
	case MPI_LOCKED:
		return !known || w->targets[target].lock;
	}
	return 1;
}

static inline int is_outside(MPI_Win win, int target)
{
	struct mpi_window *w = window_of(win);

	return __builtin_expect(w && !may_reach(w, target), 0);
}

/* Requests are of passive epochs only. */
static int is_outside_passive(MPI_Win win, int target)
{
	struct mpi_window *w = window_of(win);

	return w && (w->access < MPI_LOCKED || !may_reach(w, target));
}

#define OPERATION(name, parameters, arguments)                                                 \
	extern STUB_HIDDEN int real_##name parameters;                                         \
	OPEN(name, parameters)                                                                 \
	{                                                                                      \
		if (is_outside(win, target))                                                   \
			return window_failed(win, MPI_ERR_RMA_SYNC);                           \
		return real_##name arguments;                                                  \
	}

/* The handle of the request is exchanged. */
#define OPERATION_WITH_REQUEST(name, parameters, ...)                                          \
	BY_HAND(name, parameters);                                                             \
	int body_##name parameters                                                             \
	{                                                                                      \
		const uint64_t words[16] = {__VA_ARGS__};                                      \
                                                                                               \
		if (is_outside_passive(win, target))                                           \
			return window_failed(win, MPI_ERR_RMA_SYNC);                           \
		return mpi_perform(INDEX_##name, words);                                       \
	}

#define W(value) ((uint64_t)(value))

/* ---- memory that ranks share ---- */

extern STUB_HIDDEN int real_MPI_Isend(const void *from, int count, MPI_Datatype type,
	int target, int tag, MPI_Comm comm, int32_t *request),
	real_MPI_Sendrecv(const void *from, int count, MPI_Datatype type, int target, int tag,
		void *to, int room, MPI_Datatype received, int source, int expected,
		MPI_Comm comm, int32_t *status),
	real_MPI_Sendrecv_c(const void *from, MPI_Count count, MPI_Datatype type, int target,
		int tag, void *to, MPI_Count room, MPI_Datatype received, int source,
		int expected, MPI_Comm comm, int32_t *status),
	real_MPI_Error_class(int code, int *class),
	real_MPI_Type_size_x(MPI_Datatype type, MPI_Count *size);

struct copy {
	const struct mpi_window *w;
	const void *from;
	void *to;
	MPI_Count count, room;
	int type, received;
};

static int send_to_oneself(const struct copy *c)
{
	const struct mpi_window *w = c->w;

	if (c->count > INT_MAX || c->room > INT_MAX)
		return real_MPI_Sendrecv_c(c->from, c->count, c->type, w->rank, MPI_COPY_TAG,
			c->to, c->room, c->received, w->rank, MPI_COPY_TAG, w->control->comm,
			STATUS_IGNORE);
	return real_MPI_Sendrecv(c->from, (int)c->count, c->type, w->rank, MPI_COPY_TAG, c->to,
		(int)c->room, c->received, w->rank, MPI_COPY_TAG, w->control->comm,
		STATUS_IGNORE);
}

static int is_too_long(int error)
{
	int class = 0;

	return error && !real_MPI_Error_class(error, &class) && class == MPI_ERR_TRUNCATE;
}

/* To as many elements as there is room for. 0: it cannot be. */
static int shorten(struct copy *c)
{
	MPI_Count each = 1, room = 1;

	if (c->type != c->received && (real_MPI_Type_size_x(c->type, &each) || each <= 0 ||
					      real_MPI_Type_size_x(c->received, &room)))
		return 0;
	c->count = (MPI_Count)((__int128)c->room * room / each);
	return 1;
}

/* In a guarded body. A message to oneself copies between any two datatypes, and waits for nobody. Of two threads one
 * would get the other's message. Where more is sent than there is room for, libraries copy the part that fits into
 * memory that ranks share, and report no error. */
static int copy_typed(void *argument)
{
	static uint32_t lock;
	int several = are_threads(), r;

	if (several)
		raw_lock(&lock);
	r = send_to_oneself(argument);
	if (is_too_long(r) && shorten(argument))
		r = send_to_oneself(argument);
	if (several)
		raw_unlock(&lock);
	return r;
}

/* Whether @target's memory is this rank's, too: then it is put and got without the target, which may look at its
 * memory all the time, and make no progress in the library. Returns where @at is, or NULL: what is
 * wrong with it the library says. */
static void *shared_at(const struct mpi_window *w, int target, MPI_Aint at)
{
	const struct mpi_window_part *part;

	if (!w || !w->shared || target < 0 || target >= w->size || at < 0)
		return NULL;
	part = &w->parts[target];
	return (char *)w->memory + part->offset + at * part->unit;
}

static int copy_shared(struct copy *c, MPI_Win win)
{
	int r = mpi_guarded(c, copy_typed);

	return r ? window_failed(win, r) : 0;
}

/* ---- put, get and accumulate, and what fetches the former values: each with counts of two sizes ---- */

#define PUT(name, Count)                                                                       \
	extern STUB_HIDDEN int real_##name(const void *buffer, Count count, int type,          \
		int target, MPI_Aint at, Count target_count, int target_type, MPI_Win win);    \
	OPEN(name, (const void *buffer, Count count, int type, int target, MPI_Aint at,        \
			   Count target_count, int target_type, MPI_Win win))                  \
	{                                                                                      \
		const struct mpi_window *w = window_of(win);                                   \
		struct copy c = {w, buffer, shared_at(w, target, at), count, target_count,     \
			type, target_type};                                                    \
                                                                                               \
		if (is_outside(win, target))                                                   \
			return window_failed(win, MPI_ERR_RMA_SYNC);                           \
		return c.to ? copy_shared(&c, win)                                             \
			    : real_##name(buffer, count, type, target, at, target_count,       \
				      target_type, win);                                       \
	}
PUT(MPI_Put, int)
PUT(MPI_Put_c, MPI_Count)

#define GET(name, Count)                                                                       \
	extern STUB_HIDDEN int real_##name(void *buffer, Count count, int type, int target,    \
		MPI_Aint at, Count target_count, int target_type, MPI_Win win);                \
	OPEN(name, (void *buffer, Count count, int type, int target, MPI_Aint at,              \
			   Count target_count, int target_type, MPI_Win win))                  \
	{                                                                                      \
		const struct mpi_window *w = window_of(win);                                   \
		struct copy c = {w, shared_at(w, target, at), buffer, target_count, count,     \
			target_type, type};                                                    \
                                                                                               \
		if (is_outside(win, target))                                                   \
			return window_failed(win, MPI_ERR_RMA_SYNC);                           \
		return c.from ? copy_shared(&c, win)                                           \
			      : real_##name(buffer, count, type, target, at, target_count,     \
					target_type, win);                                     \
	}
GET(MPI_Get, int)
GET(MPI_Get_c, MPI_Count)

#define ACCUMULATE(name, Count)                                                                \
	OPERATION(name,                                                                        \
		(const void *buffer, Count count, int type, int target, MPI_Aint at,           \
			Count target_count, int target_type, MPI_Op op, MPI_Win win),          \
		(buffer, count, type, target, at, target_count, target_type, op, win))
ACCUMULATE(MPI_Accumulate, int)
ACCUMULATE(MPI_Accumulate_c, MPI_Count)

#define GET_ACCUMULATE(name, Count)                                                            \
	OPERATION(name,                                                                        \
		(const void *buffer, Count count, int type, void *result, Count result_count,  \
			int result_type, int target, MPI_Aint at, Count target_count,          \
			int target_type, MPI_Op op, MPI_Win win),                              \
		(buffer, count, type, result, result_count, result_type, target, at,           \
			target_count, target_type, op, win))
GET_ACCUMULATE(MPI_Get_accumulate, int)
GET_ACCUMULATE(MPI_Get_accumulate_c, MPI_Count)

OPERATION(MPI_Fetch_and_op,
	(const void *buffer, void *result, int type, int target, MPI_Aint at, MPI_Op op,
		MPI_Win win),
	(buffer, result, type, target, at, op, win))
OPERATION(MPI_Compare_and_swap,
	(const void *buffer, const void *compared, void *result, int type, int target,
		MPI_Aint at, MPI_Win win),
	(buffer, compared, result, type, target, at, win))

/* In a guarded body: the same of memory that ranks share, and a request that is complete: a message to nobody. */
static int copy_with_request(unsigned index, struct copy *c, MPI_Win win, int *request)
{
	int32_t real;
	int r = copy_typed(c);

	if (!r)
		r = real_MPI_Isend(
			NULL, 0, BYTE, MPI_PROC_NULL, MPI_COPY_TAG, c->w->control->comm, &real);
	if (r)
		return window_failed(win, r);
	*request = request_given(index, real, 0);
	return 0;
}

/* @from and @to: of a struct copy. */
#define TRANSFER_WITH_REQUEST(name, constant, Count, from, to, ...)                            \
	BY_HAND(name,                                                                          \
		(constant void *buffer, Count count, int type, int target, MPI_Aint at,        \
			Count target_count, int target_type, MPI_Win win, int *request));      \
	int body_##name(constant void *buffer, Count count, int type, int target, MPI_Aint at, \
		Count target_count, int target_type, MPI_Win win, int *request)                \
	{                                                                                      \
		const uint64_t words[16] = {W(buffer), W(count), W(type), W(target), W(at),    \
			W(target_count), W(target_type), W(win), W(request)};                  \
		const struct mpi_window *w = window_of(win);                                   \
		void *there = shared_at(w, target, at);                                        \
		struct copy c = {w, from, to, __VA_ARGS__};                                    \
                                                                                               \
		if (is_outside_passive(win, target))                                           \
			return window_failed(win, MPI_ERR_RMA_SYNC);                           \
		return there ? copy_with_request(INDEX_##name, &c, win, request)               \
			     : mpi_perform(INDEX_##name, words);                               \
	}
#define PUT_WITH_REQUEST(name, Count)                                                          \
	TRANSFER_WITH_REQUEST(                                                                 \
		name, const, Count, buffer, there, count, target_count, type, target_type)
#define GET_WITH_REQUEST(name, Count)                                                          \
	TRANSFER_WITH_REQUEST(                                                                 \
		name, , Count, there, buffer, target_count, count, target_type, type)
PUT_WITH_REQUEST(MPI_Rput, int)
PUT_WITH_REQUEST(MPI_Rput_c, MPI_Count)
GET_WITH_REQUEST(MPI_Rget, int)
GET_WITH_REQUEST(MPI_Rget_c, MPI_Count)

#define ACCUMULATE_WITH_REQUEST(name, Count)                                                   \
	OPERATION_WITH_REQUEST(name,                                                           \
		(const void *buffer, Count count, int type, int target, MPI_Aint at,           \
			Count target_count, int target_type, MPI_Op op, MPI_Win win,           \
			int *request),                                                         \
		W(buffer), W(count), W(type), W(target), W(at), W(target_count),               \
		W(target_type), W(op), W(win), W(request))
ACCUMULATE_WITH_REQUEST(MPI_Raccumulate, int)
ACCUMULATE_WITH_REQUEST(MPI_Raccumulate_c, MPI_Count)

#define GET_ACCUMULATE_WITH_REQUEST(name, Count)                                               \
	OPERATION_WITH_REQUEST(name,                                                           \
		(const void *buffer, Count count, int type, void *result, Count result_count,  \
			int result_type, int target, MPI_Aint at, Count target_count,          \
			int target_type, MPI_Op op, MPI_Win win, int *request),                \
		W(buffer), W(count), W(type), W(result), W(result_count), W(result_type),      \
		W(target), W(at), W(target_count), W(target_type), W(op), W(win), W(request))
GET_ACCUMULATE_WITH_REQUEST(MPI_Rget_accumulate, int)
GET_ACCUMULATE_WITH_REQUEST(MPI_Rget_accumulate_c, MPI_Count)
