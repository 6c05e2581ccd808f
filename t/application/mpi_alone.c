/*
 * mpi_alone.c - an MPI program of one rank without a launcher: collective calls and questions,
 * round after round, until SIGUSR1. Each round checks what it gets. Prints "ready" after the
 * first one, and "ok" at the end.
 *
 * With the name of a function it calls that first, which leaves something in the library. With "finalized" it calls MPI_Finalize first, and then
 * asks only whether it has.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(what)                                                                            \
	do {                                                                                   \
		if (!(what)) {                                                                 \
			printf("line %d: not so: %s\n", __LINE__, #what);                      \
			exit(1);                                                               \
		}                                                                              \
	} while (0)

static volatile sig_atomic_t told;

static void on_signal(int signal)
{
	told = 1;
}

static void collectives(int round)
{
	double in[3] = {round, 2.0 * round, -round}, out[3] = {0};
	int value = round, sum = 0, all = -1;

	CHECK(!MPI_Barrier(MPI_COMM_WORLD));
	CHECK(!MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD) && value == round);
	CHECK(!MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) &&
		sum == round);
	CHECK(!MPI_Reduce(in, out, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_SELF));
	CHECK(!memcmp(in, out, sizeof(in)));
	CHECK(!MPI_Allgather(&value, 1, MPI_INT, &all, 1, MPI_INT, MPI_COMM_WORLD) &&
		all == round);
}

static void questions(int level)
{
	int flag = 0, size = 0, rank = -1, provided = -1, bytes = 0;

	CHECK(!MPI_Initialized(&flag) && flag);
	CHECK(!MPI_Finalized(&flag) && !flag);
	CHECK(!MPI_Comm_size(MPI_COMM_WORLD, &size) && size == 1);
	CHECK(!MPI_Comm_rank(MPI_COMM_WORLD, &rank) && rank == 0);
	CHECK(!MPI_Query_thread(&provided) && provided == level);
	CHECK(!MPI_Is_thread_main(&flag) && flag);
	CHECK(!MPI_Type_size(MPI_DOUBLE, &bytes) && bytes == 8);
	CHECK(MPI_Wtime() > 0);
}

static void leave(const char *function)
{
	static int buffer;
	MPI_Request request;
	MPI_Win window;

	if (!strcmp(function, "MPI_Win_create")) {
		MPI_Win_create(&buffer, 4, 4, MPI_INFO_NULL, MPI_COMM_SELF, &window);
		MPI_Win_free(&window);
	} else if (!strcmp(function, "MPI_Bcast_init")) {
		MPI_Bcast_init(&buffer, 1, MPI_INT, 0, MPI_COMM_SELF, MPI_INFO_NULL, &request);
	} else {
		CHECK(!strcmp(function, "launched"));
	}
}

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

static void finalized(void)
{
	int flag = 0;

	MPI_Finalize();
	say("ready");
	while (!told)
		CHECK(!MPI_Finalized(&flag) && flag);
}

static void rounds(int level)
{
	for (int round = 1; round == 1 || !told; round++) {
		questions(level);
		collectives(round);
		if (round == 1)
			say("ready");
	}
	MPI_Finalize();
}

int main(int argc, char **argv)
{
	int level;

	signal(SIGUSR1, on_signal);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
	if (argc > 1 && !strcmp(argv[1], "finalized")) {
		finalized();
	} else {
		if (argc > 1)
			leave(argv[1]);
		rounds(level);
	}
	say("ok");
	return 0;
}
