/* The functions that `gen fortran` prints, and the lengths of their arrays. */
#include "stubs/mpi/fortran/fortran.h"

typedef C_MPI_Comm INNER_MPI_Comm;

static size_t length_ranks(int in_place, INNER_MPI_Comm comm);
static size_t length_neighbours(int destinations, INNER_MPI_Comm comm);

#define LENGTH_RANKS(buffer, comm)                                                             \
	length_ranks((const void *)(buffer) == mpi_fortran_in_place_, PMPI_Comm_f2c(comm))
#define LENGTH_SOURCES(comm)      length_neighbours(0, PMPI_Comm_f2c(comm))
#define LENGTH_DESTINATIONS(comm) length_neighbours(1, PMPI_Comm_f2c(comm))

#include "mpi.fortran.inc"

enum {
	CART = 1, /* what MPI_Topo_test says, Open MPI's */
	GRAPH = 2,
	DIST_GRAPH = 3,
};

#define CALL(name, own) P##name

#include "shared/mpi/array_lengths.inc"
