/*
 * MPI_Finalize is called when the program exits: by a function that it has registered before MPI_Init ("atexit"), or by a
 * destructor ("destructor"). One rank computes for a second afterwards, so that a launcher sees how the other one has ended.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, by_destructor;

static void end(void)
{
	if (MPI_Finalize() == MPI_SUCCESS)
		dprintf(1, "done\n");
	while (rank && clock() < CLOCKS_PER_SEC)
		;
}

static void __attribute__((destructor)) destroy(void)
{
	if (by_destructor)
		end();
}

int main(int argc, char **argv)
{
	by_destructor = argc > 1 && !strcmp(argv[1], "destructor");
	if (!by_destructor && atexit(end))
		return 1;
	return MPI_Init(&argc, &argv) || MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}
