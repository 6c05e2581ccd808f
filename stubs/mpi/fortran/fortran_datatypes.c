/* Datatypes: those that Fortran describes otherwise than C, and MPI-1's, whose addresses are INTEGERs. */
#include "stubs/mpi/fortran/fortran.h"

extern int PMPI_Type_get_contents(
	void *type, int ints, int addresses, int types, int *i, MPI_Aint *a, void **t),
	PMPI_Type_match_size(int typeclass, int size, void **type),
	PMPI_Type_size(void *type, int *size),
	PMPI_Get_address(void *location, MPI_Aint *address),
	PMPI_Type_get_extent(void *type, MPI_Aint *lower, MPI_Aint *extent),
	PMPI_Type_create_hindexed(
		int count, const int *lengths, const MPI_Aint *places, void *old, void **made),
	PMPI_Type_create_hvector(
		int count, int length, MPI_Aint stride, void *old, void **made),
	PMPI_Type_create_struct(int count, const int *lengths, const MPI_Aint *places,
		void *const *types, void **made);

FORTRAN_MPI(type_get_contents, TYPE_GET_CONTENTS, Type_get_contents,
	(const int *type, const int *ints, const int *addresses, const int *types, int *i,
		MPI_Aint *a, int *t, int *ierror))
{
	WITH_MEMORY
	size_t length = LENGTH(t, *types);
	void **in_t = ALLOC(t, length, void *);
	int gave;

	NO_MEMORY_GIVES(ierror)
	for (size_t k = 0; k < length; k++)
		in_t[k] = NULL;
	gave = PMPI_Type_get_contents(
		PMPI_Type_f2c(*type), *ints, *addresses, *types, i, a, in_t);
	for (size_t k = 0; k < length && !gave; k++)
		if (in_t[k])
			t[k] = PMPI_Type_c2f(in_t[k]);
	exchange_free(&memory);
	GIVE(gave);
}

/* Whether a type is there, and of that size: some are not with each compiler. */
static int has_size(int type, int size)
{
	int own = 0;

	return !PMPI_Type_size(PMPI_Type_f2c(type), &own) && own == size;
}

/*
 * Fortran's types of a class (MPI_TYPECLASS_INTEGER, _REAL, _COMPLEX), by their numbers, in the order of Open MPI: the
 * compiler's flags say how large the first one of each is. C's are others. 0: there is none.
 */
static int fortrans_type(int typeclass, int size)
{
	static const struct {
		int typeclass, size, number;
	} types[] = {
		{1, 0, 7},
		{1, 1, 8},
		{1, 2, 9},
		{1, 4, 10},
		{1, 8, 11},
		{1, 16, 12},
		{2, 0, 13},
		{2, 4, 14},
		{2, 8, 15},
		{2, 16, 16},
		{3, 0, 18},
		{3, 8, 19},
		{3, 16, 20},
		{3, 32, 21},
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (types[i].typeclass == typeclass &&
			(!types[i].size || types[i].size == size) &&
			has_size(types[i].number, size))
			return types[i].number;
	return 0;
}

FORTRAN_MPI(type_match_size, TYPE_MATCH_SIZE, Type_match_size,
	(const int *typeclass, const int *size, int *type, int *ierror))
{
	enum { NO_TYPES_SIZE = 3 };
	int number = fortrans_type(*typeclass, *size), gave = 0;
	void *made = NULL;

	/* The function for C fails as it should, also where C has a type of that size. */
	if (!number)
		gave = PMPI_Type_match_size(*typeclass, NO_TYPES_SIZE, &made);
	else
		*type = number;
	GIVE(gave);
}

/* ---- MPI-1 ---- */

FORTRAN_MPI(address, ADDRESS, Address, (void *location, int *address, int *ierror))
{
	MPI_Aint whole = 0;
	int gave = PMPI_Get_address(BUFFER(location), &whole);

	if (!gave)
		*address = (int)whole;
	GIVE(gave);
}

FORTRAN_MPI(type_extent, TYPE_EXTENT, Type_extent, (const int *type, int *extent, int *ierror))
{
	MPI_Aint lower = 0, whole = 0;
	int gave = PMPI_Type_get_extent(PMPI_Type_f2c(*type), &lower, &whole);

	if (!gave)
		*extent = (int)whole;
	GIVE(gave);
}

FORTRAN_MPI(type_lb, TYPE_LB, Type_lb, (const int *type, int *bound, int *ierror))
{
	MPI_Aint lower = 0, whole = 0;
	int gave = PMPI_Type_get_extent(PMPI_Type_f2c(*type), &lower, &whole);

	if (!gave)
		*bound = (int)lower;
	GIVE(gave);
}

FORTRAN_MPI(type_ub, TYPE_UB, Type_ub, (const int *type, int *bound, int *ierror))
{
	MPI_Aint lower = 0, whole = 0;
	int gave = PMPI_Type_get_extent(PMPI_Type_f2c(*type), &lower, &whole);

	if (!gave)
		*bound = (int)(lower + whole);
	GIVE(gave);
}

FORTRAN_MPI(type_hvector, TYPE_HVECTOR, Type_hvector,
	(const int *count, const int *length, const int *stride, const int *old, int *type,
		int *ierror))
{
	void *made = NULL;
	int gave =
		PMPI_Type_create_hvector(*count, *length, *stride, PMPI_Type_f2c(*old), &made);

	if (!gave)
		*type = PMPI_Type_c2f(made);
	GIVE(gave);
}

FORTRAN_MPI(type_hindexed, TYPE_HINDEXED, Type_hindexed,
	(const int *count, const int *lengths, const int *places, const int *old, int *type,
		int *ierror))
{
	WITH_MEMORY
	size_t length = LENGTH(places, *count);
	MPI_Aint *in_places = ALLOC(places, length, MPI_Aint);
	void *made = NULL;
	int gave;

	NO_MEMORY_GIVES(ierror)
	for (size_t i = 0; i < length; i++)
		in_places[i] = places[i];
	gave = PMPI_Type_create_hindexed(
		*count, lengths, in_places, PMPI_Type_f2c(*old), &made);
	if (!gave)
		*type = PMPI_Type_c2f(made);
	exchange_free(&memory);
	GIVE(gave);
}

FORTRAN_MPI(type_struct, TYPE_STRUCT, Type_struct,
	(const int *count, const int *lengths, const int *places, const int *types, int *type,
		int *ierror))
{
	WITH_MEMORY
	size_t length = LENGTH(places, *count);
	MPI_Aint *in_places = ALLOC(places, length, MPI_Aint);
	void **in_types = ALLOC(types, length, void *), *made = NULL;
	int gave;

	NO_MEMORY_GIVES(ierror)
	for (size_t i = 0; i < length; i++) {
		in_places[i] = places[i];
		in_types[i] = PMPI_Type_f2c(types[i]);
	}
	gave = PMPI_Type_create_struct(*count, lengths, in_places, in_types, &made);
	if (!gave)
		*type = PMPI_Type_c2f(made);
	exchange_free(&memory);
	GIVE(gave);
}
