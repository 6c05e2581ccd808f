/*
 * Datatypes: the library tells what each is made of (MPI_Type_get_contents), down to the
 * predefined ones. A datatype that the program has a handle of is referred to by it.
 */
#include <stdlib.h>

#include "lower/mpi/functions.h"
#include "lower/mpi/mpi_objects.h"
#include "lower/runtime.h"

enum { /* of MPICH's ABI */
	NAMED = 1,
	DUP = 2,
	CONTIGUOUS = 3,
	VECTOR = 4,
	HVECTOR = 6,
	INDEXED = 7,
	HINDEXED = 9,
	INDEXED_BLOCK = 10,
	STRUCT = 12,
	SUBARRAY = 13,
	DARRAY = 14,
	F90_REAL = 15,
	F90_COMPLEX = 16,
	F90_INTEGER = 17,
	RESIZED = 18,
	HINDEXED_BLOCK = 19,
	KNOWN = -1, /* a handle of the program's follows */
};

struct contents {
	int how, ints, addresses, types;
	int *i, *t;
	int64_t *a;
};

static int contents_alloc(struct contents *c)
{
	c->i = calloc(c->ints + 1, sizeof(*c->i));
	c->t = calloc(c->types + 1, sizeof(*c->t));
	c->a = calloc(c->addresses + 1, sizeof(*c->a));
	return c->i && c->t && c->a ? 0 : agent_fail("no memory for a datatype");
}

static void contents_free(struct contents *c)
{
	free(c->i);
	free(c->t);
	free(c->a);
}

/* ---- asked at a checkpoint ---- */

static int is_permanent(int how)
{
	return how == NAMED || how == F90_REAL || how == F90_COMPLEX || how == F90_INTEGER;
}

static int is_large(int real, int *large)
{
	int64_t ints, addresses, counts = 0, types;
	int how;

	if (mpi.Type_get_envelope_c &&
		MPI_DO(Type_get_envelope_c, real, &ints, &addresses, &counts, &types, &how))
		return -1;
	*large = counts != 0;
	return 0;
}

static int get_envelope(int real, struct contents *c)
{
	int large;

	if (is_large(real, &large) < 0)
		return -1;
	if (large)
		return agent_fail("it has a datatype that was made with large counts "
				  "(MPI_Type_..._c), which cannot be saved yet");
	return MPI_DO(Type_get_envelope, real, &c->ints, &c->addresses, &c->types, &c->how);
}

static int learn_datatype(struct mpi_state *s, struct mpi_object *of, int real);

/* A part, which the library has given us a reference to. */
static int learn_part(struct mpi_state *s, struct mpi_object *of, int real)
{
	struct mpi_object *o = mpi_object_below(s, real);
	struct contents c;

	if (get_envelope(real, &c) < 0)
		return -1;
	if (o && o->sequence < of->sequence) {
		if (learned_put(&of->learned, KNOWN) < 0 ||
			learned_put(&of->learned, o->handle) < 0)
			return -1;
	} else if (learn_datatype(s, of, real) < 0) {
		return -1;
	}
	return is_permanent(c.how) ? 0 : MPI_DO(Type_free, &real);
}

static int learn_contents(
	struct mpi_state *s, struct mpi_object *of, int real, struct contents *c)
{
	struct mpi_learned *l = &of->learned;

	if (MPI_DO(Type_get_contents, real, c->ints, c->addresses, c->types, c->i, c->a, c->t))
		return -1;
	if (learned_put(l, c->ints) < 0 || learned_put_ints(l, c->i, c->ints) < 0 ||
		learned_put(l, c->addresses) < 0)
		return -1;
	for (int i = 0; i < c->addresses; i++)
		if (learned_put(l, c->a[i]) < 0)
			return -1;
	if (learned_put(l, c->types) < 0)
		return -1;
	for (int i = 0; i < c->types; i++)
		if (learn_part(s, of, c->t[i]) < 0)
			return -1;
	return 0;
}

static int learn_datatype(struct mpi_state *s, struct mpi_object *of, int real)
{
	struct contents c = {0};
	int r;

	if (get_envelope(real, &c) < 0 || learned_put(&of->learned, c.how) < 0)
		return -1;
	if (c.how == NAMED)
		return learned_put(&of->learned, real);
	r = contents_alloc(&c) < 0 ? -1 : learn_contents(s, of, real, &c);
	contents_free(&c);
	return r;
}

int datatype_learn(struct mpi_state *s, struct mpi_object *o)
{
	return learn_datatype(s, o, o->real);
}

/* ---- made again at a restart ---- */

static int make_arrays(const struct contents *c, int *real)
{
	const int *i = c->i;
	int n = i[0];

	switch (c->how) {
	case INDEXED:
		return MPI_DO(Type_indexed, n, i + 1, i + 1 + n, c->t[0], real);
	case HINDEXED:
		return MPI_DO(Type_create_hindexed, n, i + 1, c->a, c->t[0], real);
	case INDEXED_BLOCK:
		return MPI_DO(Type_create_indexed_block, n, i[1], i + 2, c->t[0], real);
	case HINDEXED_BLOCK:
		return MPI_DO(Type_create_hindexed_block, n, i[1], c->a, c->t[0], real);
	case STRUCT:
		return MPI_DO(Type_create_struct, n, i + 1, c->a, c->t, real);
	case SUBARRAY:
		return MPI_DO(Type_create_subarray, n, i + 1, i + 1 + n, i + 1 + 2 * n,
			i[1 + 3 * n], c->t[0], real);
	case DARRAY:
		n = i[2];
		return MPI_DO(Type_create_darray, i[0], i[1], n, i + 3, i + 3 + n,
			i + 3 + 2 * n, i + 3 + 3 * n, i[3 + 4 * n], c->t[0], real);
	}
	return agent_fail("a datatype was made in a way that is not known: %d", c->how);
}

static int make_from(const struct contents *c, int *real)
{
	const int *i = c->i;

	switch (c->how) {
	case DUP:
		return MPI_DO(Type_dup, c->t[0], real);
	case CONTIGUOUS:
		return MPI_DO(Type_contiguous, i[0], c->t[0], real);
	case VECTOR:
		return MPI_DO(Type_vector, i[0], i[1], i[2], c->t[0], real);
	case HVECTOR:
		return MPI_DO(Type_create_hvector, i[0], i[1], c->a[0], c->t[0], real);
	case RESIZED:
		return MPI_DO(Type_create_resized, c->t[0], c->a[0], c->a[1], real);
	case F90_REAL:
		return MPI_DO(Type_create_f90_real, i[0], i[1], real);
	case F90_COMPLEX:
		return MPI_DO(Type_create_f90_complex, i[0], i[1], real);
	case F90_INTEGER:
		return MPI_DO(Type_create_f90_integer, i[0], real);
	}
	return make_arrays(c, real);
}

/* @ours: it is to be freed when it has been used. */
static int make_datatype(struct mpi_state *s, struct learned_reader *r, int *real, int *ours);

static int make_parts(
	struct mpi_state *s, struct learned_reader *r, struct contents *c, int *real)
{
	int *ours = calloc(c->types + 1, sizeof(*ours)), failed = !ours;

	for (int i = 0; i < c->types && !failed; i++)
		failed = make_datatype(s, r, &c->t[i], &ours[i]) < 0;
	if (!failed)
		failed = make_from(c, real);
	for (int i = 0; i < c->types && !failed; i++)
		if (ours[i])
			failed = MPI_DO(Type_free, &c->t[i]);
	free(ours);
	return failed ? -1 : 0;
}

static int make_contents(
	struct mpi_state *s, struct learned_reader *r, struct contents *c, int *real)
{
	c->ints = learned_get(r);
	c->i = learned_get_ints(r, c->ints);
	c->addresses = learned_get(r);
	c->a = calloc(c->addresses + 1, sizeof(*c->a));
	if (!c->i || !c->a)
		return agent_fail("no memory for a datatype");
	for (int i = 0; i < c->addresses; i++)
		c->a[i] = learned_get(r);
	c->types = learned_get(r);
	c->t = calloc(c->types + 1, sizeof(*c->t));
	return c->t ? make_parts(s, r, c, real) : agent_fail("no memory for a datatype");
}

static int make_datatype(struct mpi_state *s, struct learned_reader *r, int *real, int *ours)
{
	struct contents c = {.how = learned_get(r)};
	int failed;

	*ours = !is_permanent(c.how) && c.how != KNOWN;
	if (c.how == KNOWN || c.how == NAMED) {
		*real = mpi_real(s, learned_get(r));
		return 0;
	}
	failed = make_contents(s, r, &c, real);
	contents_free(&c);
	return failed;
}

int datatype_make(struct mpi_state *s, struct mpi_object *o, struct learned_reader *r)
{
	int ours, real;

	if (make_datatype(s, r, &real, &ours) < 0)
		return -1;
	if (o->committed && MPI_DO(Type_commit, &real))
		return -1;
	o->real = real;
	return 0;
}
