/*
 * mpi_threads.c - an MPI program of one rank without a launcher with several threads in calls (MPI_THREAD_MULTIPLE):
 * one makes errors on MPI_COMM_WORLD and sees that its handler hears of each, one receives on a communicator that has a
 * handler of its own, and two free receives that are under way. Round after round until SIGUSR1; "ready" after the
 * first of each, and "ok" at the end.
 */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi_one_rank.h"

enum { MANY = 200, THREADS = 4, ROUNDS = 80 };

/* ---- errors that the handler of MPI_COMM_WORLD is to hear of ---- */

static int heard;

static void hear(MPI_Comm *comm, int *code, ...)
{
	int class = 0;

	MPI_Error_class(*code, &class);
	heard += *comm == MPI_COMM_WORLD && class == MPI_ERR_RANK;
}

static void make_errors(MPI_Comm comm)
{
	int data = 0;

	for (int i = 0; i < MANY; i++) {
		int before = heard;

		CHECK(MPI_Send(&data, 1, MPI_INT, 9, 1, MPI_COMM_WORLD));
		CHECK(heard == before + 1);
	}
}

/* ---- receives on a communicator with a handler of its own ---- */

static void exchange(MPI_Comm comm)
{
	for (int i = 0; i < MANY; i++) {
		int in = -1;

		CHECK(!MPI_Sendrecv(
			&i, 1, MPI_INT, 0, 1, &in, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE));
		CHECK(in == i);
	}
}

/* ---- receives that are freed, of two threads at the same time ---- */

static void free_receives(MPI_Comm comm)
{
	static _Thread_local int in[MANY];
	MPI_Request kept[MANY], freed;

	for (int i = 0; i < MANY; i++) {
		in[i] = -1;
		MPI_Irecv(&in[i], 1, MPI_INT, 0, i, comm, i % 2 ? &freed : &kept[i]);
		if (i % 2)
			MPI_Request_free(&freed);
	}
	for (int i = 0; i < MANY; i++)
		CHECK(!MPI_Send(&i, 1, MPI_INT, 0, i, comm));
	for (int i = 0; i < MANY; i += 2)
		CHECK(!MPI_Wait(&kept[i], MPI_STATUS_IGNORE));
	/* What was sent before comes before. */
	exchange(comm);
	for (int i = 0; i < MANY; i++)
		CHECK(in[i] == i);
}

/* ---- */

static void (*const parts[THREADS])(MPI_Comm) = {
	make_errors, exchange, free_receives, free_receives};
static MPI_Comm comms[THREADS];
static pthread_barrier_t first;

static void *run(void *number)
{
	int me = (int)(long)number;

	for (int round = 1; round <= ROUNDS || !told_to_end; round++) {
		parts[me](comms[me]);
		if (round == ROUNDS)
			pthread_barrier_wait(&first);
	}
	return NULL;
}

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

static void prepare(void)
{
	MPI_Errhandler handler;

	MPI_Comm_create_errhandler(hear, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	for (int i = 0; i < THREADS; i++) {
		MPI_Comm_dup(MPI_COMM_SELF, &comms[i]);
		MPI_Comm_set_errhandler(comms[i], MPI_ERRORS_RETURN);
	}
	MPI_Errhandler_free(&handler);
	pthread_barrier_init(&first, NULL, THREADS + 1);
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	int level;

	signal(SIGUSR1, on_end_signal);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	CHECK(level == MPI_THREAD_MULTIPLE);
	prepare();
	for (long i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, run, (void *)i));
	pthread_barrier_wait(&first);
	say("ready");
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	MPI_Finalize();
	say("ok");
	return 0;
}
