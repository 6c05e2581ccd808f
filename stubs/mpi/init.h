/* init.h - how the MPI library comes up (init.c). */
#ifndef STUBS_MPI_INIT_H
#define STUBS_MPI_INIT_H

#include "stubs/library.h"

/* Before the library says how many ranks there are: what the launcher says. */
STUB_HIDDEN int launcher_may_have_several(void);

/* In a guarded body: the library is about to be initialised. The program may have set what it is to be told by its
 * environment. From now on a child of fork has no MPI. */
STUB_HIDDEN void library_comes_up(void);

#endif
