/* What follows from the table, and what it needs. */
#include "stubs/mpi/fortran/fortran.h"

#include "mpi.fortran.inc"

/* ---- lengths ---- */

extern int PMPI_Comm_test_inter(void *comm, int *inter), PMPI_Comm_size(void *comm, int *size),
	PMPI_Comm_remote_size(void *comm, int *size);

size_t length_ranks(int in_place, C_MPI_Comm comm)
{
	int inter = 0, size = 0;

	if (!in_place && !PMPI_Comm_test_inter(comm, &inter))
		inter ? PMPI_Comm_remote_size(comm, &size) : PMPI_Comm_size(comm, &size);
	return size;
}

enum topology {
	TOPOLOGY_CART = 1,
	TOPOLOGY_GRAPH = 2,
	TOPOLOGY_DIST_GRAPH = 3,
};

size_t length_neighbours(int destinations, C_MPI_Comm comm)
{
	int what = 0, rank = 0, in = 0, out = 0, weighted;

	PMPI_Topo_test(comm, &what);
	if (what == TOPOLOGY_CART && !PMPI_Cartdim_get(comm, &in))
		return 2ul * in;
	if (what == TOPOLOGY_GRAPH && !PMPI_Comm_rank(comm, &rank) &&
		!PMPI_Graph_neighbors_count(comm, rank, &in))
		return in;
	if (what == TOPOLOGY_DIST_GRAPH)
		PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
	return destinations ? out : in;
}

/* ---- texts ---- */

char *text_in(struct exchange_memory *memory, const char *text, int length)
{
	int first = 0, end = length > 0 ? length : 0;
	char *copy;

	while (first < end && text[first] == ' ')
		first++;
	while (end > first && text[end - 1] == ' ')
		end--;
	copy = exchange_alloc(memory, end - first + 1);
	if (!copy)
		return NULL;
	for (int i = first; i < end; i++)
		copy[i - first] = text[i];
	copy[end - first] = 0;
	return copy;
}

void text_out(char *text, int length, const char *from)
{
	int i = 0;

	for (; i < length && from[i]; i++)
		text[i] = from[i];
	for (; i < length; i++)
		text[i] = ' ';
}
