/* datatype_contents.h - what MPI says a datatype was made of (MPI_Type_get_contents). */
#ifndef LOWER_MPI_DATATYPE_CONTENTS_H
#define LOWER_MPI_DATATYPE_CONTENTS_H

#include <stdint.h>

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
	int how;
	int ints, types;
	int64_t addresses, counts; /* counts: 0, it was made without large ones */
	int *i, *t;
	int64_t *a, *c;
};

/* Make one of large counts, of parts that are there. 0 or -1. */
int datatype_make_large(const struct contents *of, int *real);

#endif
