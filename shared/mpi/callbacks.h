/* callbacks.h - functions of the program that the real library calls with handles. */
#ifndef SHARED_MPI_CALLBACKS_H
#define SHARED_MPI_CALLBACKS_H

/* Different functions that there can be, of operations and of error handlers each. */
#define MPI_CALLBACKS     1024
#define MPI_CALLBACK_SIZE 16

#endif
