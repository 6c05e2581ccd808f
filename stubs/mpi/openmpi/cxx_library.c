/*
 * What Open MPI's library for C++ (libmpi_cxx.so.40, of Open MPI 4 and before) needs of libmpi besides the functions of
 * MPI. Each program that mpicxx has linked loads it, and most use none of the bindings in it; those that do have Open MPI's
 * own library (stubs/audit). So these are there for ld.so. They are called where bindings have come later, by dlopen(3)
 * or with a library of the program's: for what a program in C++ creates with functions of its own. It is told then that
 * this does not work, rather than that a symbol is missing.
 */
#include <stdlib.h>

#include "shared/raw.h"
#include "stubs/mpi/openmpi/predefined.h"

/* Lists of Open MPI's own error codes and data representations, as large as in 4.1. */
extern EXPORT int ompi_errcode_intern_lastused;
extern EXPORT char ompi_errcodes_intern[0x78], ompi_registered_datareps[0x40];
int ompi_errcode_intern_lastused;
char ompi_errcodes_intern[0x78] __attribute__((aligned(16)));
char ompi_registered_datareps[0x40] __attribute__((aligned(16)));

#define NEEDS_LIBRARY(symbol, what)                                                            \
	extern EXPORT void symbol(void);                                                       \
	void symbol(void)                                                                      \
	{                                                                                      \
		raw_complain(what " in C++ needs Open MPI's library in the program: use "      \
				  "--mpi=whole");                                              \
		abort();                                                                       \
	}
NEEDS_LIBRARY(ompi_op_set_cxx_callback, "an operation")
NEEDS_LIBRARY(ompi_attr_create_keyval, "a keyval")
NEEDS_LIBRARY(ompi_errhandler_create, "an error handler")
NEEDS_LIBRARY(ompi_errhandler_invoke, "an error in a call")
