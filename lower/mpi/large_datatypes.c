/*
 * large_datatypes.c - datatypes that were made with large counts (MPI_Type_..._c). Lengths, strides and displacements
 * are all among the counts then, whether they are in bytes or not.
 */
#include "lower/mpi/datatype_contents.h"

#include "lower/mpi/functions.h"
#include "lower/runtime.h"

static int make_arrays(const struct contents *of, int *real)
{
	const int64_t *c = of->c, n = c[0];
	const int *i = of->i;
	int dimensions;

	switch (of->how) {
	case INDEXED:
		return MPI_DO(Type_indexed_c, n, c + 1, c + 1 + n, of->t[0], real);
	case HINDEXED:
		return MPI_DO(Type_create_hindexed_c, n, c + 1, c + 1 + n, of->t[0], real);
	case INDEXED_BLOCK:
		return MPI_DO(Type_create_indexed_block_c, n, c[1], c + 2, of->t[0], real);
	case HINDEXED_BLOCK:
		return MPI_DO(Type_create_hindexed_block_c, n, c[1], c + 2, of->t[0], real);
	case STRUCT:
		return MPI_DO(Type_create_struct_c, n, c + 1, c + 1 + n, of->t, real);
	case SUBARRAY:
		dimensions = i[0];
		return MPI_DO(Type_create_subarray_c, dimensions, c, c + dimensions,
			c + 2l * dimensions, i[1], of->t[0], real);
	case DARRAY:
		dimensions = i[2];
		return MPI_DO(Type_create_darray_c, i[0], i[1], dimensions, c, i + 3,
			i + 3 + dimensions, i + 3 + 2l * dimensions, i[3 + 3l * dimensions],
			of->t[0], real);
	}
	return agent_fail(
		"a datatype of large counts was made in a way that is not known: %d", of->how);
}

int datatype_make_large(const struct contents *of, int *real)
{
	const int64_t *c = of->c;

	if (!mpi.Type_contiguous_c)
		return agent_fail("the MPI library has no large counts (MPI 4.0), which a "
				  "datatype was made with");
	switch (of->how) {
	case CONTIGUOUS:
		return MPI_DO(Type_contiguous_c, c[0], of->t[0], real);
	case VECTOR:
		return MPI_DO(Type_vector_c, c[0], c[1], c[2], of->t[0], real);
	case HVECTOR:
		return MPI_DO(Type_create_hvector_c, c[0], c[1], c[2], of->t[0], real);
	case RESIZED:
		return MPI_DO(Type_create_resized_c, of->t[0], c[0], c[1], real);
	}
	return make_arrays(of, real);
}
