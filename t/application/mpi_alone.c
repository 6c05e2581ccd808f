/*
 * mpi_alone.c - an MPI program of one rank without a launcher: collective calls and questions,
 * round after round, until SIGUSR1. Each round checks what it gets. Prints "ready" after the
 * first one, and "ok" at the end.
 *
 * With the name of a function it calls that first, which leaves something in the library. With "finalized" it calls
 * MPI_Finalize first, and then asks only whether it has. With "session" it uses a session instead, and ends.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi_one_rank.h"

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
	static double before;
	int flag = 0, size = 0, rank = -1, provided = -1, bytes = 0;

	CHECK(!MPI_Initialized(&flag) && flag);
	CHECK(!MPI_Finalized(&flag) && !flag);
	CHECK(!MPI_Comm_size(MPI_COMM_WORLD, &size) && size == 1);
	CHECK(!MPI_Comm_rank(MPI_COMM_WORLD, &rank) && rank == 0);
	CHECK(!MPI_Query_thread(&provided) && provided == level);
	CHECK(!MPI_Is_thread_main(&flag) && flag);
	CHECK(!MPI_Type_size(MPI_DOUBLE, &bytes) && bytes == 8);
	CHECK(MPI_Wtime() >= before);
	before = MPI_Wtime();
}

static void leave(const char *function)
{
	static int buffer;

	if (!strcmp(function, "MPI_Win_allocate")) {
		MPI_Win window;
		void *memory;

		CHECK(!MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_SELF, &memory, &window));
		CHECK(!MPI_Win_free(&window));
	} else if (!strcmp(function, "MPI_File_open")) {
		MPI_File file;
		int mode = MPI_MODE_CREATE | MPI_MODE_RDWR;

		CHECK(!MPI_File_open(MPI_COMM_SELF, "file", mode, MPI_INFO_NULL, &file));
		CHECK(!MPI_File_write_at(file, 8, &buffer, 1, MPI_INT, MPI_STATUS_IGNORE));
		CHECK(!MPI_File_close(&file));
	} else if (!strcmp(function, "MPI_T_init_thread")) {
		int provided;

		MPI_T_init_thread(MPI_THREAD_SERIALIZED, &provided);
	} else {
		CHECK(!strcmp(function, "launched"));
	}
}

/* No MPI_Init, and no MPI_COMM_WORLD. */
static void session(void)
{
#if MPI_VERSION >= 4
	MPI_Session session;
	MPI_Group group;
	MPI_Comm comm;
	int size = 0;

	CHECK(!MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
	CHECK(!MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
	CHECK(!MPI_Comm_create_from_group(
		group, "ours", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm));
	CHECK(!MPI_Group_free(&group) && !MPI_Barrier(comm));
	CHECK(!MPI_Comm_size(comm, &size) && size == 1 && !MPI_Comm_free(&comm));
	CHECK(!MPI_Session_finalize(&session));
#endif
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
	while (!told_to_end)
		CHECK(!MPI_Finalized(&flag) && flag);
}

static void rounds(int level)
{
	for (int round = 1; round == 1 || !told_to_end; round++) {
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

	signal(SIGUSR1, on_end_signal);
	if (argc > 1 && !strcmp(argv[1], "session")) {
		session();
		say("ok");
		return 0;
	}
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
