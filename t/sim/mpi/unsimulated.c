/* What the lower half looks for by name and is not simulated, and what the stub makes of other calls: a function that
 * ends the program. */
#include "lower/mpi/functions.h"

_Noreturn void sim_fatal(const char *format, ...);

#define F(name, parameters)                                                                    \
	__attribute__((weak)) int MPI_##name(void);                                            \
	__attribute__((weak)) int MPI_##name(void)                                             \
	{                                                                                      \
		sim_fatal("MPI_" #name " is not simulated");                                   \
	}
MPI_FUNCTIONS(F)
F(Win_allocate, ())
F(Win_fence, ())
F(Win_lock, ())
F(Win_unlock, ())
F(Win_post, ())
F(Win_start, ())
F(Win_complete, ())
F(Win_wait, ())
