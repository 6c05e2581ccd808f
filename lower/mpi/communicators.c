/*
 * Communicators, of one group with their topologies, and between two. They are made again from ranks of
 * MPI_COMM_WORLD: it does not matter what they were made of, which may be no more.
 */
#include <stdlib.h>

#include "lower/mpi/functions.h"
#include "lower/mpi/mpi_objects.h"
#include "lower/runtime.h"

enum {
	GRAPH = 1,
	CART = 2,
	DIST_GRAPH = 3,
};

/* ---- asked at a checkpoint ---- */

static int save_cart(struct mpi_saved_values *v, int real, int *numbers, int n)
{
	return MPI_DO(Cart_get, real, n, numbers, numbers + n, numbers + 2 * n) ||
			       saved_put_ints(v, numbers, 2 * n) < 0
		       ? -1
		       : 0;
}

static int save_graph(struct mpi_saved_values *v, int real, int *numbers, int nodes, int edges)
{
	return MPI_DO(Graph_get, real, nodes, edges, numbers, numbers + nodes) ||
			       saved_put_ints(v, numbers, nodes + edges) < 0
		       ? -1
		       : 0;
}

static int save_dist_graph(struct mpi_saved_values *v, int real, int *numbers, int in, int out)
{
	return MPI_DO(Dist_graph_neighbors, real, in, numbers, numbers + in, out,
		       numbers + 2 * in, numbers + 2 * in + out) ||
			       saved_put_ints(v, numbers, 2 * (in + out)) < 0
		       ? -1
		       : 0;
}

static int save_topology(struct mpi_saved_values *v, int real)
{
	int what, first = 0, second = 0, weighted = 0, *numbers, r = 0;

	if (MPI_DO(Topo_test, real, &what))
		return -1;
	if ((what == CART && MPI_DO(Cartdim_get, real, &first)) ||
		(what == GRAPH && MPI_DO(Graphdims_get, real, &first, &second)) ||
		(what == DIST_GRAPH &&
			MPI_DO(Dist_graph_neighbors_count, real, &first, &second, &weighted)))
		return -1;
	if (saved_put(v, what) < 0 || saved_put(v, first) < 0 || saved_put(v, second) < 0 ||
		saved_put(v, weighted) < 0)
		return -1;
	numbers = calloc(3 * ((long)first + second) + 1, sizeof(*numbers));
	if (!numbers)
		return agent_fail("no memory for a topology");
	if (what == CART)
		r = save_cart(v, real, numbers, first);
	else if (what == GRAPH)
		r = save_graph(v, real, numbers, first, second);
	else if (what == DIST_GRAPH)
		r = save_dist_graph(v, real, numbers, first, second);
	free(numbers);
	return r;
}

static int save_group_of(struct mpi_saved_values *v, int (*group_of)(int, int *), int real)
{
	int group, r;

	if (mpi_failed("MPI_Comm_group", group_of(real, &group)))
		return -1;
	r = group_save(v, group);
	return MPI_DO(Group_free, &group) ? -1 : r;
}

int comm_save(struct mpi_object *o)
{
	struct mpi_saved_values *v = &o->saved;
	int inter;

	if (MPI_DO(Comm_test_inter, o->real, &inter) || saved_put(v, inter) < 0 ||
		save_group_of(v, mpi.Comm_group, o->real) < 0)
		return -1;
	return inter ? save_group_of(v, mpi.Comm_remote_group, o->real)
		     : save_topology(v, o->real);
}

/* ---- made again at a restart ---- */

static const int *unweighted_edges(void)
{
	int **variable = library_symbol("MPI_UNWEIGHTED");

	return variable ? *variable : NULL;
}

static int make_dist_graph(int plain, const int *n, int in, int out, int weighted, int *real)
{
	const int *in_weights = weighted ? n + in : unweighted_edges();
	const int *out_weights = weighted ? n + 2 * in + out : unweighted_edges();

	return MPI_DO(Dist_graph_create_adjacent, plain, in, n, in_weights, out, n + 2 * in,
		out_weights, MPI_INFO_NULL, 0, real);
}

static int make_topology(struct saved_reader *r, int plain, int *real)
{
	int what = saved_get(r), first = saved_get(r), second = saved_get(r);
	int weighted = saved_get(r), *n, failed = 0;

	if (what != CART && what != GRAPH && what != DIST_GRAPH) {
		*real = plain;
		return 0;
	}
	n = saved_get_ints(r, what == GRAPH ? first + second : 2l * (first + second));
	if (!n)
		return -1;
	if (what == CART)
		failed = MPI_DO(Cart_create, plain, first, n, n + first, 0, real);
	else if (what == GRAPH)
		failed = MPI_DO(Graph_create, plain, first, n, n + first, 0, real);
	else
		failed = make_dist_graph(plain, n, first, second, weighted, real);
	free(n);
	return failed || MPI_DO(Comm_free, &plain) ? -1 : 0;
}

/* Its first member, as a rank of MPI_COMM_WORLD. */
static int first_of(struct saved_reader *r, int *rank)
{
	int size = saved_get(r), *ranks = saved_get_ints(r, size);

	if (!ranks)
		return -1;
	*rank = ranks[0];
	free(ranks);
	return 0;
}

static int make_between(struct saved_reader *r, int within, int tag, int *real)
{
	int other;

	return first_of(r, &other) < 0 ||
			       MPI_DO(Intercomm_create, within, 0, MPI_COMM_WORLD, other, tag,
				       real) ||
			       MPI_DO(Comm_free, &within)
		       ? -1
		       : 0;
}

int comm_make(struct saved_reader *r, int *real, int tag)
{
	int inter = saved_get(r), group, plain;

	if (group_make(r, &group) < 0 ||
		MPI_DO(Comm_create_group, MPI_COMM_WORLD, group, tag, &plain) ||
		MPI_DO(Group_free, &group))
		return -1;
	return inter ? make_between(r, plain, tag, real) : make_topology(r, plain, real);
}
