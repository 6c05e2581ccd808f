/* predefined.h - what Open MPI has predefined: its handles are addresses of variables. */
#ifndef STUBS_MPI_OPENMPI_PREDEFINED_H
#define STUBS_MPI_OPENMPI_PREDEFINED_H

#include "shared/mpi/openmpi.h"
#include "stubs/library.h"

#define EXPORT __attribute__((visibility("default")))

/* A function that programs call, with its second name for profilers. */
#define EXPORTED(result, name, parameters)                                                     \
	extern EXPORT result P##name parameters;                                               \
	extern EXPORT result name parameters __attribute__((weak, alias("P" #name)));          \
	result P##name parameters

/* What such a variable begins with, in this library and where the program has a copy of it. */
struct predefined {
	int theirs;  /* MPICH's handle */
	int fortran; /* Open MPI's number */
};

/* Their addresses for the program, by MPI_PLACE(). */
extern STUB_HIDDEN void *const predefined_handles[MPI_PLACES];

/* The lowest and the highest of them: set before the program's first instruction. */
extern STUB_HIDDEN uintptr_t predefined_first, predefined_last;

#endif
