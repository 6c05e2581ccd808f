/*
 * MPI_Finalize is called when the program exits: by a function that it has registered before MPI_Init ("atexit"), or by a
 * destructor ("destructor"). One rank takes its time afterwards, so that a launcher sees how the other one has ended.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, by_destructor;

static void end(void)
{
	if (MPI_Finalize() == MPI_SUCCESS)
		dprintf(1, "done\n");
	if (rank)
		sleep(1);
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
