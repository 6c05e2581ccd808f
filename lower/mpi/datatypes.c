/*
 * Datatypes: the library tells what each is made of (MPI_Type_get_contents), down to the
 * predefined ones. A datatype that the program has a handle of is referred to by it.
 */
#include <stdlib.h>

#include "lower/mpi/datatype_contents.h"
#include "lower/mpi/functions.h"
#include "lower/mpi/mpi_objects.h"
#include "lower/runtime.h"

static int contents_alloc(struct contents *c)
{
	c->i = calloc(c->ints + 1, sizeof(*c->i));
	c->t = calloc(c->types + 1, sizeof(*c->t));
	c->a = calloc(c->addresses + 1, sizeof(*c->a));
	c->c = calloc(c->counts + 1, sizeof(*c->c));
	return c->i && c->t && c->a && c->c ? 0 : agent_fail("no memory for a datatype");
}

static void contents_free(struct contents *c)
{
	free(c->i);
	free(c->t);
	free(c->a);
	free(c->c);
}

/* ---- asked at a checkpoint ---- */

static int is_permanent(int how)
{
	return how == NAMED || how == F90_REAL || how == F90_COMPLEX || how == F90_INTEGER;
}

/* Whether it was made with large counts, which can be asked for by functions for those only. */
static int get_large(int real, struct contents *c)
{
	int64_t ints, addresses, counts = 0, types;

	if (mpi.Type_get_envelope_c &&
		MPI_DO(Type_get_envelope_c, real, &ints, &addresses, &counts, &types, &c->how))
		return -1;
	if (!counts)
		return 0;
	c->ints = ints;
	c->addresses = addresses;
	c->counts = counts;
	c->types = types;
	return 1;
}

static int get_envelope(int real, struct contents *c)
{
	int large = get_large(real, c), addresses = 0;

	if (large)
		return large < 0 ? -1 : 0;
	if (MPI_DO(Type_get_envelope, real, &c->ints, &addresses, &c->types, &c->how))
		return -1;
	c->addresses = addresses;
	return 0;
}

static int get_contents(int real, struct contents *c)
{
	if (c->counts)
		return MPI_DO(Type_get_contents_c, real, c->ints, c->addresses, c->counts,
			c->types, c->i, c->a, c->c, c->t);
	return MPI_DO(
		Type_get_contents, real, c->ints, c->addresses, c->types, c->i, c->a, c->t);
}

static int release_part(int real)
{
	struct contents c = {0};

	if (get_envelope(real, &c) < 0)
		return -1;
	return is_permanent(c.how) ? 0 : MPI_DO(Type_free, &real);
}

static int save_datatype(struct mpi_state *s, struct mpi_object *of, int real);

/* A part, which the library has given us a reference to. */
static int save_part(struct mpi_state *s, struct mpi_object *of, int real)
{
	struct mpi_object *o = mpi_object_of_real(s, real);

	if (o && o->sequence < of->sequence) {
		if (saved_put(&of->saved, KNOWN) < 0 || saved_put(&of->saved, o->handle) < 0)
			return -1;
	} else if (save_datatype(s, of, real) < 0) {
		return -1;
	}
	return release_part(real);
}

static int put_numbers(struct mpi_saved_values *v, const int64_t *numbers, int64_t count)
{
	if (saved_put(v, count) < 0)
		return -1;
	for (int64_t i = 0; i < count; i++)
		if (saved_put(v, numbers[i]) < 0)
			return -1;
	return 0;
}

static int save_contents(
	struct mpi_state *s, struct mpi_object *of, int real, struct contents *c)
{
	struct mpi_saved_values *v = &of->saved;

	if (get_contents(real, c) || saved_put(v, c->ints) < 0 ||
		saved_put_ints(v, c->i, c->ints) < 0 ||
		put_numbers(v, c->a, c->addresses) < 0 || put_numbers(v, c->c, c->counts) < 0 ||
		saved_put(v, c->types) < 0)
		return -1;
	for (int64_t i = 0; i < c->types; i++)
		if (save_part(s, of, c->t[i]) < 0)
			return -1;
	return 0;
}

static int save_datatype(struct mpi_state *s, struct mpi_object *of, int real)
{
	struct contents c = {0};
	int r;

	if (get_envelope(real, &c) < 0 || saved_put(&of->saved, c.how) < 0)
		return -1;
	if (c.how == NAMED)
		return saved_put(&of->saved, real);
	r = contents_alloc(&c) < 0 ? -1 : save_contents(s, of, real, &c);
	contents_free(&c);
	return r;
}

int datatype_save(struct mpi_state *s, struct mpi_object *o)
{
	return save_datatype(s, o, o->real);
}

/* What the library has made of it only to give it out: ROMIO does, both when a view is set and when it is asked for. */
static int unwrap_datatype(int *real)
{
	struct contents c = {0};
	int r, inner = 0, wrapped = 0;

	if (get_envelope(*real, &c) < 0)
		return -1;
	if (c.how != CONTIGUOUS)
		return 0;
	r = contents_alloc(&c) < 0 ? -1 : get_contents(*real, &c);
	if (!r) {
		inner = c.t[0];
		wrapped = (c.counts ? c.c[0] : c.i[0]) == 1;
	}
	contents_free(&c);
	if (r || !wrapped)
		return r ? -1 : release_part(inner);
	if (MPI_DO(Type_free, real))
		return -1;
	*real = inner;
	return 1;
}

/* 1: @real or a part of it is resized to begin behind its first data. */
static int begins_behind(int real, struct contents *c, int *is)
{
	int64_t first, extent;
	int r = 0;

	if (get_contents(real, c))
		return -1;
	if (c->how == RESIZED && MPI_DO(Type_get_true_extent, c->t[0], &first, &extent))
		return -1;
	if (c->how == RESIZED && (c->counts ? c->c[0] : c->a[0]) > first)
		*is = 1;
	for (int64_t i = 0; i < c->types; i++)
		if (datatype_begins_behind(c->t[i], is) < 0 || release_part(c->t[i]) < 0)
			r = -1;
	return r;
}

int datatype_begins_behind(int real, int *is)
{
	struct contents c = {0};
	int r;

	if (get_envelope(real, &c) < 0)
		return -1;
	if (is_permanent(c.how))
		return 0;
	r = contents_alloc(&c) < 0 ? -1 : begins_behind(real, &c, is);
	contents_free(&c);
	return r;
}

int datatype_save_part(struct mpi_state *s, struct mpi_saved_values *v, int real)
{
	struct mpi_object of = {.sequence = UINT64_MAX, .saved = *v};
	int r;

	do
		r = mpi_object_of_real(s, real) ? 0 : unwrap_datatype(&real);
	while (r > 0);
	if (!r)
		r = save_part(s, &of, real);
	*v = of.saved;
	return r;
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
static int make_datatype(struct mpi_state *s, struct saved_reader *r, int *real, int *ours);

static int make_parts(
	struct mpi_state *s, struct saved_reader *r, struct contents *c, int *real)
{
	int *ours = calloc(c->types + 1, sizeof(*ours)), failed = !ours;

	for (int64_t i = 0; i < c->types && !failed; i++)
		failed = make_datatype(s, r, &c->t[i], &ours[i]) < 0;
	if (!failed)
		failed = c->counts ? datatype_make_large(c, real) : make_from(c, real);
	for (int64_t i = 0; i < c->types && !failed; i++)
		if (ours[i])
			failed = MPI_DO(Type_free, &c->t[i]);
	free(ours);
	return failed ? -1 : 0;
}

/* NULL: no memory. */
static int64_t *get_numbers(struct saved_reader *r, int64_t *count)
{
	int64_t *numbers;

	*count = saved_get(r);
	numbers = calloc(*count + 1, sizeof(*numbers));
	for (int64_t i = 0; numbers && i < *count; i++)
		numbers[i] = saved_get(r);
	return numbers;
}

static int make_contents(
	struct mpi_state *s, struct saved_reader *r, struct contents *c, int *real)
{
	c->ints = saved_get(r);
	c->i = saved_get_ints(r, c->ints);
	c->a = get_numbers(r, &c->addresses);
	c->c = get_numbers(r, &c->counts);
	if (!c->i || !c->a || !c->c)
		return agent_fail("no memory for a datatype");
	c->types = saved_get(r);
	c->t = calloc(c->types + 1, sizeof(*c->t));
	return c->t ? make_parts(s, r, c, real) : agent_fail("no memory for a datatype");
}

static int make_datatype(struct mpi_state *s, struct saved_reader *r, int *real, int *ours)
{
	struct contents c = {.how = saved_get(r)};
	int failed;

	*ours = !is_permanent(c.how) && c.how != KNOWN;
	if (c.how == KNOWN || c.how == NAMED) {
		*real = mpi_real(s, saved_get(r));
		return 0;
	}
	failed = make_contents(s, r, &c, real);
	contents_free(&c);
	return failed;
}

int datatype_make(struct mpi_state *s, struct mpi_object *o, struct saved_reader *r)
{
	int ours, real;

	if (make_datatype(s, r, &real, &ours) < 0)
		return -1;
	if (o->committed && MPI_DO(Type_commit, &real))
		return -1;
	o->real = real;
	return 0;
}

int datatype_make_part(struct mpi_state *s, struct saved_reader *r, int *real, int *ours)
{
	if (make_datatype(s, r, real, ours) < 0)
		return -1;
	return *ours ? MPI_DO(Type_commit, real) : 0;
}
