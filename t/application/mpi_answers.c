/*
 * mpi_answers.c - an MPI program of one rank that asks what a library may not be able to answer: sizes above 2 GiB, an
 * error code that it keeps, texts and classes that it adds, functions that not all libraries have. Round after round
 * until SIGUSR1. Prints "ready" after the first one, and "ok" at the end.
 *
 * With "early" it initialises MPI only when the file "go" is there, which it has asked for before, and then opens a
 * file: it prints "open" to a file of that name.
 */
#include <mpi.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "mpi_one_rank.h"

#define GIGA (1l << 30)

static int calls, kept, code;
static MPI_Datatype large;

static void handle(MPI_Comm *comm, int *error, ...)
{
	(void)comm;
	(void)error;
	calls++;
}

/* The right answer, or an error that the handler was told. */
static void answered(int r, MPI_Count answer, MPI_Count right)
{
	CHECK(r ? calls > 0 : answer == right);
	calls = 0;
}

static void sizes(void)
{
	MPI_Count n = 0;
	MPI_Status s;
	int r;

	memset(&s, 0, sizeof(s));
	CHECK(!MPI_Type_size_c(large, &n) && n == 3 * GIGA);
	r = MPI_Pack_size_c(1, large, MPI_COMM_WORLD, &n);
	answered(r, n, 3 * GIGA);
	r = MPI_Pack_size_c(2, large, MPI_COMM_WORLD, &n);
	answered(r, n, 6 * GIGA);
	CHECK(!MPI_Pack_size_c(4, MPI_INT, MPI_COMM_WORLD, &n) && n == 16);
	CHECK(!MPI_Status_set_elements_x(&s, MPI_BYTE, 6 * GIGA));
	CHECK(!MPI_Get_elements_c(&s, MPI_BYTE, &n) && n == 6 * GIGA);
	CHECK(!MPI_Get_count_c(&s, MPI_BYTE, &n) && n == 6 * GIGA);
	CHECK(!MPI_Get_count_c(&s, large, &n) && n == 2);
	CHECK(!MPI_Status_set_elements_x(&s, MPI_BYTE, 6 * GIGA + 1));
	CHECK(!MPI_Get_count_c(&s, large, &n) && n == MPI_UNDEFINED);
}

static void errors(void)
{
	char text[2 * MPI_MAX_ERROR_STRING];
	int class = -1, length = 0;

	CHECK(!MPI_Error_class(kept, &class) && class == MPI_ERR_RANK);
	CHECK(!MPI_Error_string(kept, text, &length) && length > 0);
	CHECK(!MPI_Error_string(code, text, &length) && length >= 255);
	for (int i = 0; i < length; i++)
		CHECK(text[i] == 't');
}

static void unsupported(void)
{
	MPI_Count ints, addresses, counts, types;
	MPI_Request request;
	MPI_Comm copy;
	int how, r = MPI_Comm_idup_with_info(MPI_COMM_SELF, MPI_INFO_NULL, &copy, &request);

	if (r)
		CHECK(calls == 1);
	else
		CHECK(!MPI_Wait(&request, MPI_STATUS_IGNORE) && !MPI_Comm_free(&copy));
	calls = 0;
	r = MPI_Type_get_envelope_c(large, &ints, &addresses, &counts, &types, &how);
	CHECK(r ? calls == 1 : !calls);
	calls = 0;
}

static void make_all(void)
{
	char text[401] = "";
	MPI_Errhandler handler;
	int class;

	MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)handle, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
	kept = MPI_Send(NULL, 0, MPI_INT, 7, 0, MPI_COMM_WORLD);
	CHECK(kept && calls == 1);
	calls = 0;
	memset(text, 't', sizeof(text) - 1);
	CHECK(!MPI_Add_error_class(&class) && !MPI_Add_error_code(class, &code) &&
		!MPI_Add_error_string(code, text));
	CHECK(!MPI_Type_contiguous(3 * GIGA / 4096, MPI_CHAR, &large));
	CHECK(!MPI_Type_contiguous(4096, large, &large) && !MPI_Type_commit(&large));
}

/* Each has a number of its own, or is refused. */
static void add_classes(void)
{
	int before = -1, class = -1, r = 0;

	for (int i = 0; i < 300 && !r; i++, before = class) {
		r = MPI_Add_error_class(&class);
		CHECK(r ? calls == 1 : class > before && (class & 0x7f));
	}
	CHECK(r);
	calls = 0;
}

static void early(int *argc, char ***argv)
{
	MPI_File file;
	int flag = 1;

	CHECK(!MPI_Initialized(&flag) && !flag);
	puts("ready");
	fflush(stdout);
	while (access("go", F_OK))
		CHECK(!MPI_Initialized(&flag) && !flag);
	MPI_Init(argc, argv);
	CHECK(!MPI_File_open(
		MPI_COMM_SELF, "file", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file));
	close(creat("open", 0600));
	while (!told_to_end)
		CHECK(!MPI_Barrier(MPI_COMM_WORLD));
	MPI_File_close(&file);
	MPI_Finalize();
	puts("ok");
	exit(0);
}

int main(int argc, char **argv)
{
	signal(SIGUSR1, on_end_signal);
	if (argc > 1)
		early(&argc, &argv);
	MPI_Init(&argc, &argv);
	make_all();
	for (int round = 1; round == 1 || !told_to_end; round++) {
		sizes();
		errors();
		unsupported();
		if (round == 1) {
			puts("ready");
			fflush(stdout);
		}
	}
	add_classes();
	MPI_Finalize();
	puts("ok");
	return 0;
}
