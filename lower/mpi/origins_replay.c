/*
 * origins_replay.c - requests that are made again by the program's own calls, whose arguments are kept (struct
 * mpi_origin).
 *
 * A persistent request of a collective call needs all members of its communicator to make it, in the same order. A
 * member that has freed its own has none any more; then nobody can start it, and the others need not make theirs. So
 * before each the members agree on which is the next one that all have.
 */
#include <stdlib.h>
#include <string.h>

#include "lower/mpi/functions.h"
#include "lower/mpi/mpi_objects.h"
#include "lower/mpi/requests_replay.h"
#include "lower/runtime.h"

enum {
	LONG = 0x4c000807,
	MAXIMUM = 0x58000001,
};

#define NONE INT64_MAX

typedef int any_call(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
	uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

/* ---- one call ---- */

static const char *name_of(const struct mpi_state *s, uint32_t call)
{
	const char *name = s->names;

	while (call-- && *name)
		name += strlen(name) + 1;
	return name;
}

/* The library's handles of an array. The caller frees it. */
static int *real_handles(const struct mpi_state *s, const int *handles, uint32_t count)
{
	int *reals = calloc(count + 1ul, sizeof(*reals));

	for (uint32_t i = 0; reals && i < count; i++)
		reals[i] = mpi_real(s, handles[i]);
	return reals;
}

static int perform_call(const struct mpi_state *s, struct mpi_request *r, const uint64_t *w)
{
	const char *name = name_of(s, r->call);
	any_call *call = (any_call *)library_symbol(name);

	if (!call)
		return agent_fail("the MPI library has no %s", name);
	return mpi_failed(name,
		call(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11]));
}

static int call_again(const struct mpi_state *s, struct mpi_request *r)
{
	const struct mpi_origin *o = r->origin;
	uint64_t words[MPI_ORIGIN_WORDS];
	int *arrays[MPI_ORIGIN_WORDS] = {0}, failed = 0;

	for (int i = 0; i < MPI_ORIGIN_WORDS; i++) {
		words[i] = o->words[i];
		if (o->kinds[i] == MPI_WORD_HANDLE)
			words[i] = mpi_real(s, (int)o->words[i]);
		if (o->kinds[i] == MPI_WORD_RESULT)
			words[i] = (uint64_t)&r->real;
		if (o->kinds[i] != MPI_WORD_HANDLES)
			continue;
		arrays[i] = real_handles(s, (const int *)o->words[i], o->counts[i]);
		words[i] = (uint64_t)arrays[i];
		failed |= !arrays[i];
	}
	failed = failed ? agent_fail("no memory for the datatypes of a request")
			: perform_call(s, r, words);
	for (int i = 0; i < MPI_ORIGIN_WORDS; i++)
		free(arrays[i]);
	return failed;
}

/* ---- lists ---- */

static int by_sequence(const void *a, const void *b)
{
	const struct mpi_request *x = *(struct mpi_request *const *)a;
	const struct mpi_request *y = *(struct mpi_request *const *)b;

	return x->origin->sequence < y->origin->sequence
		       ? -1
		       : x->origin->sequence > y->origin->sequence;
}

/* Those of a kind, and of a communicator if there is one, in the order in which they were made. */
static uint32_t list_requests(const struct mpi_messages *m, enum mpi_request_kind kind,
	const struct mpi_count *counts, struct mpi_request **list)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < m->used; i++) {
		struct mpi_request *r = mpi_request_at(m, i);

		if (r->kind == kind && (!counts || r->counts == counts))
			list[count++] = r;
	}
	qsort(list, count, sizeof(*list), by_sequence);
	return count;
}

static struct mpi_object *comm_number(struct mpi_state *s, uint32_t i)
{
	struct mpi_object *o = i == 0 ? &s->world : i == 1 ? &s->self : s->objects[i - 2];

	return o->real && o->kind == MPI_COMM && o->count ? o : NULL;
}

static int by_number(const void *a, const void *b)
{
	const struct mpi_object *x = *(struct mpi_object *const *)a;
	const struct mpi_object *y = *(struct mpi_object *const *)b;

	return x->count->number < y->count->number ? -1 : x->count->number > y->count->number;
}

/* In an order that is the same in all ranks. */
static uint32_t list_comms(struct mpi_state *s, struct mpi_object **list)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < s->count + 2; i++)
		if (comm_number(s, i))
			list[count++] = comm_number(s, i);
	qsort(list, count, sizeof(*list), by_number);
	return count;
}

/* ---- persistent requests of collective calls ---- */

/* The largest of each value in all members; between two groups the first call gives what the others have, and
 * the second one what they have been given. */
static int largest_of_all(int comm, int64_t values[2])
{
	int64_t theirs[2], ours[2];
	int inter;

	if (MPI_DO(Comm_test_inter, comm, &inter) ||
		MPI_DO(Allreduce, values, theirs, 2, LONG, MAXIMUM, comm))
		return -1;
	if (!inter) {
		memcpy(values, theirs, sizeof(theirs));
		return 0;
	}
	if (MPI_DO(Allreduce, theirs, ours, 2, LONG, MAXIMUM, comm))
		return -1;
	for (int i = 0; i < 2; i++)
		values[i] = theirs[i] > ours[i] ? theirs[i] : ours[i];
	return 0;
}

static int make_of_comm(struct mpi_state *s, const struct mpi_object *comm,
	struct mpi_request **list, uint32_t count)
{
	uint32_t i = 0;

	for (;;) {
		int64_t next = i < count ? (int64_t)list[i]->origin->order : NONE;
		int64_t values[2] = {next, -next}; /* the largest, and the smallest */

		if (largest_of_all(comm->real, values))
			return -1;
		if (values[0] == NONE)
			return 0;
		if (values[0] == -values[1] && call_again(s, list[i++]))
			return -1;
		while (i < count && (int64_t)list[i]->origin->order < values[0])
			i++;
	}
}

static int make_alone(struct mpi_state *s, struct mpi_request **list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (call_again(s, list[i]))
			return -1;
	return 0;
}

/* Without such requests nothing is asked of each communicator. */
static int has_any(uint32_t count, int *any)
{
	int64_t values[2] = {count, 0};

	if (largest_of_all(MPI_COMM_WORLD, values))
		return -1;
	*any = values[0] != 0;
	return 0;
}

static int make_collective(
	struct mpi_state *s, struct mpi_object **comms, struct mpi_request **list)
{
	uint32_t count = list_requests(s->messages, MPI_PERSISTENT_COLLECTIVE, NULL, list);
	uint32_t comm_count = list_comms(s, comms);
	int any = 0, failed = s->initialised ? has_any(count, &any) : 0;

	for (uint32_t i = 0; i < count; i++)
		list[i]->real = MPI_REQUEST_NULL;
	for (uint32_t i = 0; i < comm_count && any && !failed; i++) {
		const struct mpi_count *c = comms[i]->count;

		count = list_requests(s->messages, MPI_PERSISTENT_COLLECTIVE, c, list);
		failed = c->members == 1 ? make_alone(s, list, count)
					 : make_of_comm(s, comms[i], list, count);
	}
	return failed;
}

/* ---- generalized ones ---- */

static int make_generalized(struct mpi_state *s, struct mpi_request *r)
{
	int (*set_fortran)(int) = library_symbol("MPII_Grequest_set_lang_f77");

	/* Of this one nobody can ask, and its functions have been called. */
	r->real = MPI_REQUEST_NULL;
	if (r->orphan == MPI_ORPHAN_TOLD)
		return 0;
	if (call_again(s, r))
		return -1;
	if (r->orphan)
		r->orphan = MPI_ORPHAN_AGAIN;
	if (r->fortran && (!set_fortran || set_fortran(r->real)))
		return agent_fail("the MPI library takes no functions in Fortran");
	return r->completed ? MPI_DO(Grequest_complete, r->real) : 0;
}

/* ---- all ---- */

int origins_make(struct mpi_state *s)
{
	struct mpi_object **comms = calloc(s->count + 2ul, sizeof(*comms));
	struct mpi_request **list = calloc(s->messages->used + 1ul, sizeof(*list));
	int failed = !comms || !list;
	uint32_t count;

	if (failed)
		agent_fail("no memory for %u requests", s->messages->used);
	else
		failed = make_collective(s, comms, list);
	count = failed ? 0 : list_requests(s->messages, MPI_GENERALIZED, NULL, list);
	for (uint32_t i = 0; i < count && !failed; i++)
		failed = make_generalized(s, list[i]);
	free(comms);
	free(list);
	return failed ? -1 : 0;
}
