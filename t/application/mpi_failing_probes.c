/* Probes for messages of a rank that there is not return, although an error handler takes the error, at the level of threads
 * that is given as the argument. Another thread gets such errors all the time meanwhile. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int size, told, stopped;

static void handler(MPI_Comm *comm, int *code, ...)
{
	(void)comm;
	(void)code;
	__atomic_add_fetch(&told, 1, __ATOMIC_RELAXED);
}

static void *fail(void *unused)
{
	int flag;

	do
		MPI_Iprobe(size, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	while (!__atomic_load_n(&stopped, __ATOMIC_RELAXED));
	return unused;
}

/* Finds what this rank sends itself, in spite of the other thread's errors. */
static int find_own(MPI_Comm comm)
{
	int i, word = 1, got, failed = 0;

	for (i = 0; i < 2000; i++) {
		MPI_Request r;
		MPI_Message m = MPI_MESSAGE_NULL;

		failed += MPI_Isend(&word, 1, MPI_INT, 0, 1, comm, &r) != MPI_SUCCESS;
		failed += MPI_Probe(0, 1, comm, MPI_STATUS_IGNORE) != MPI_SUCCESS;
		failed += MPI_Mprobe(0, 1, comm, &m, MPI_STATUS_IGNORE) != MPI_SUCCESS;
		failed += MPI_Mrecv(&got, 1, MPI_INT, &m, MPI_STATUS_IGNORE) != MPI_SUCCESS;
		failed += MPI_Wait(&r, MPI_STATUS_IGNORE) != MPI_SUCCESS;
	}
	return failed;
}

int main(int argc, char **argv)
{
	int level, failed = 0;
	MPI_Errhandler errors;
	MPI_Message m;
	pthread_t thread;

	if (argc < 2 || MPI_Init_thread(&argc, &argv, atoi(argv[1]), &level))
		return 1;
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_create_errhandler(handler, &errors);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, errors);
	MPI_Probe(size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Mprobe(size, 0, MPI_COMM_WORLD, &m, MPI_STATUS_IGNORE);
	printf("told of %d\n", told);
	if (level == MPI_THREAD_MULTIPLE && !pthread_create(&thread, NULL, fail, NULL)) {
		failed = find_own(MPI_COMM_SELF);
		__atomic_store_n(&stopped, 1, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
	}
	printf("failed: %d\n", failed);
	MPI_Errhandler_free(&errors);
	return MPI_Finalize();
}
