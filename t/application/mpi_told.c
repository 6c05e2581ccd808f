/*
 * mpi_told.c - an MPI program that keeps what its library has told it, and asks again in each round: limits, the
 * thread level, names, errors that it has added, datatypes and what lies in them; and that sends by all kinds of calls,
 * those with large counts among them (where there are any). "ready" after the first round, "round.RANK" as
 * mpi_ranks.h says, and "ok" at the end, when the file "go" is there.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi_ranks.h"

/* ---- texts: none is longer than the header says ---- */

#define FENCE                 0x5a
#define IS_FENCED(text, most) ((text)[most] == FENCE)

static void check_texts(void)
{
	char text[2 * MPI_MAX_LIBRARY_VERSION_STRING + 4096];
	int length = -1;

	memset(text, FENCE, sizeof(text));
	MPI_Get_library_version(text, &length);
	CHECK(length > 0 && length < MPI_MAX_LIBRARY_VERSION_STRING &&
		(int)strlen(text) == length && IS_FENCED(text, MPI_MAX_LIBRARY_VERSION_STRING));
	memset(text, FENCE, sizeof(text));
	MPI_Get_processor_name(text, &length);
	CHECK(length > 0 && length < MPI_MAX_PROCESSOR_NAME && (int)strlen(text) == length &&
		IS_FENCED(text, MPI_MAX_PROCESSOR_NAME));
	memset(text, FENCE, sizeof(text));
	MPI_Error_string(MPI_ERR_TRUNCATE, text, &length);
	CHECK(length > 0 && length < MPI_MAX_ERROR_STRING && (int)strlen(text) == length &&
		IS_FENCED(text, MPI_MAX_ERROR_STRING));
	memset(text, FENCE, sizeof(text));
	MPI_Type_get_name(MPI_DOUBLE, text, &length);
	CHECK(!strcmp(text, "MPI_DOUBLE") && length == 10);
}

/* ---- what is made once ---- */

static MPI_Comm comm;
static MPI_Datatype column;
static char long_name[MPI_MAX_OBJECT_NAME];
static int class, code, other_class, code_of_known, told_tags, told_level, told_version,
	told_subversion, handled;

static void handle(MPI_Comm *of, int *error, ...)
{
	int known = -1;

	MPI_Error_class(*error, &known);
	handled = *of == comm && (*error == code || known == MPI_ERR_RANK) ? known : -1;
}

static int tags(void)
{
	int *value = NULL, flag = 0;

	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
	CHECK(flag);
	return *value;
}

static void make_all(void)
{
	MPI_Errhandler handler;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	memset(long_name, 'n', sizeof(long_name) - 1);
	MPI_Comm_set_name(comm, long_name);
#if MPI_MAX_INFO_KEY > 64
	MPI_Info hints;

	MPI_Info_create(&hints);
	MPI_Info_set(hints, "mpi_assert_strict_persistent_collective_ordering", "true");
	MPI_Comm_set_info(comm, hints);
	MPI_Info_free(&hints);
#endif
	MPI_Type_vector(3, 2, 4, MPI_INT, &column);
	MPI_Type_commit(&column);
	MPI_Type_set_name(column, long_name);
	MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)handle, &handler);
	MPI_Comm_set_errhandler(comm, handler);
	MPI_Errhandler_free(&handler);
	MPI_Add_error_class(&class);
	MPI_Add_error_code(class, &code);
	MPI_Add_error_string(code, "of mine");
	MPI_Add_error_class(&other_class);
	MPI_Add_error_code(MPI_ERR_ARG, &code_of_known);
	told_tags = tags();
	MPI_Query_thread(&told_level);
	MPI_Get_version(&told_version, &told_subversion);
}

static void check_told(void)
{
	char text[2 * MPI_MAX_ERROR_STRING + MPI_MAX_OBJECT_NAME];
	int level, version, subversion, length, known, *last, flag;

	CHECK(tags() == told_tags && told_tags >= 32767);
	MPI_Query_thread(&level);
	CHECK(level == told_level);
	MPI_Get_version(&version, &subversion);
	CHECK(version == told_version && subversion == told_subversion);
	MPI_Comm_get_name(comm, text, &length);
	CHECK(!strcmp(text, long_name) && length == (int)strlen(long_name));
	MPI_Type_get_name(column, text, &length);
	CHECK(!strcmp(text, long_name));
	MPI_Error_string(code, text, &length);
	CHECK(!strcmp(text, "of mine"));
	MPI_Error_class(code, &known);
	CHECK(known == class && other_class != class);
	MPI_Error_class(code_of_known, &known);
	CHECK(known == MPI_ERR_ARG);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag);
	CHECK(flag && *last >= class);
	handled = 0;
	MPI_Comm_call_errhandler(comm, code);
	CHECK(handled == class);
	handled = 0;
	MPI_Send(NULL, 0, MPI_INT, size + 7, 0, comm);
	CHECK(handled == MPI_ERR_RANK);
}

/* ---- a ring of messages, with the highest tag that there is ---- */

static int left, right;

static void send_columns(int round)
{
	int out[12], in[12] = {0}, count = 0, bytes = 0;
	MPI_Status s;

	for (int i = 0; i < 12; i++)
		out[i] = 100 * round + 12 * rank + i;
	MPI_Sendrecv(
		out, 1, column, right, told_tags, in, 1, column, left, told_tags, comm, &s);
	for (int i = 0; i < 12; i++)
		CHECK(in[i] == (i % 4 < 2 ? 100 * round + 12 * left + i : 0));
	MPI_Get_count(&s, column, &count);
	MPI_Get_elements(&s, MPI_INT, &bytes);
	CHECK(s.MPI_SOURCE == left && s.MPI_TAG == told_tags && count == 1 && bytes == 6);
}

#if MPI_VERSION >= 4
#define MOST 16

static void exchange_large(int round)
{
	int out[MOST], in[MOST], all[MOST], sum = 0,
					    wanted = size * (size - 1) / 2 + size * round;
	MPI_Count counts[MOST], elements = 0;
	MPI_Aint places[MOST];
	MPI_Request r;
	MPI_Status s;
	int mine = rank + round;

	MPI_Irecv_c(in, MOST, MPI_INT, left, 5, comm, &r);
	for (int i = 0; i < MOST; i++)
		out[i] = 1000 * round + 10 * rank + i;
	MPI_Send_c(out, MOST, MPI_INT, right, 5, comm);
	MPI_Wait(&r, &s);
	MPI_Get_count_c(&s, MPI_INT, &elements);
	CHECK(elements == MOST && in[3] == 1000 * round + 10 * left + 3);
	MPI_Allreduce_c(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
	CHECK(sum == wanted);
	for (int i = 0; i < size; i++)
		counts[i] = 1, places[i] = size - 1 - i;
	MPI_Allgatherv_c(&mine, 1, MPI_INT, all, counts, places, MPI_INT, comm);
	for (int i = 0; i < size; i++)
		CHECK(all[i] == size - 1 - i + round);
	/* Only the root has arrays. */
	memset(all, 0, sizeof(all));
	MPI_Gatherv_c(&mine, 1, MPI_INT, rank == 1 ? all : NULL,
		rank == 1 ? counts : (void *)16, rank == 1 ? places : (void *)16, MPI_INT, 1,
		comm);
	for (int i = 0; rank == 1 && i < size; i++)
		CHECK(all[i] == size - 1 - i + round);
	MPI_Ialltoallv_c(out, counts, places, MPI_INT, in, counts, places, MPI_INT, comm, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	for (int i = 0; i < size; i++)
		CHECK(in[size - 1 - i] == 1000 * round + 10 * i + size - 1 - rank);
}
#else
static void exchange_large(int round)
{
	(void)round;
}
#endif

int main(int argc, char **argv)
{
	int provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	own = rank + 1;
	left = (rank + size - 1) % size;
	right = (rank + 1) % size;
	make_all();
	CHECK(told_level == provided);
	for (;; the_round++) {
		int end = !rank && !access("go", F_OK);

		MPI_Bcast(&end, 1, MPI_INT, 0, comm);
		if (end)
			break;
		work_at_random();
		check_texts();
		check_told();
		send_columns(the_round);
		exchange_large(the_round);
		if (!the_round) {
			puts("ready");
			fflush(stdout);
		}
		show_round(the_round);
	}
	MPI_Comm_free(&comm);
	MPI_Type_free(&column);
	MPI_Finalize();
	puts("ok");
	return 0;
}
