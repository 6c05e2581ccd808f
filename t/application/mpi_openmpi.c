/*
 * mpi_openmpi.c - what the ABIs of Open MPI and MPICH have otherwise: constants that go into calls and come out of
 * them, statuses, numbers of Fortran, arrays of handles longer than a stub's own memory. Prints "rank N of M: done".
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_short_program.h"

/* ---- constants ---- */

static void nobody(void)
{
	MPI_Status s = {.MPI_SOURCE = 77, .MPI_TAG = 77, .MPI_ERROR = 77};
	int in = 5, count = -1, at[2], no_ranks[2] = {MPI_PROC_NULL, 0}, before, next;
	MPI_Message m;
	MPI_Group group;
	MPI_Comm line;

	CHECK(!MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &s));
	CHECK(s.MPI_SOURCE == MPI_PROC_NULL && s.MPI_TAG == MPI_ANY_TAG && s.MPI_ERROR == 77);
	CHECK(!MPI_Get_count(&s, MPI_INT, &count) && count == 0 && in == 5);
	CHECK(!MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &m, &s) &&
		m == MPI_MESSAGE_NO_PROC);
	CHECK(!MPI_Mrecv(&in, 1, MPI_INT, &m, &s) && m == MPI_MESSAGE_NULL);
	CHECK(!MPI_Comm_group(MPI_COMM_WORLD, &group));
	CHECK(!MPI_Group_translate_ranks(group, 2, no_ranks, group, at));
	CHECK(at[0] == MPI_PROC_NULL && at[1] == 0 && !MPI_Group_free(&group));
	CHECK(group == MPI_GROUP_NULL);
	CHECK(!MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &(int){0}, 0, &line));
	CHECK(!MPI_Cart_shift(line, 0, 1, &before, &next));
	CHECK(before == (rank ? rank - 1 : MPI_PROC_NULL));
	CHECK(next == (rank < size - 1 ? rank + 1 : MPI_PROC_NULL));
	CHECK(!MPI_Topo_test(line, &count) && count == MPI_CART && !MPI_Comm_free(&line));
	CHECK(!MPI_Topo_test(MPI_COMM_WORLD, &count) && count == MPI_UNDEFINED);
}

static void errors(void)
{
	int class = -1, added, code, length, r;
	char text[MPI_MAX_ERROR_STRING];

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	r = MPI_Send(&r, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
	CHECK(r == MPI_ERR_RANK && !MPI_Error_class(r, &class) && class == MPI_ERR_RANK);
	CHECK(MPI_Type_contiguous(-1, MPI_INT, &(MPI_Datatype){0}) == MPI_ERR_COUNT);
	CHECK(MPI_Bcast(&r, 1, MPI_INT, size, MPI_COMM_WORLD) == MPI_ERR_ROOT);
	CHECK(MPI_Barrier(MPI_COMM_NULL) == MPI_ERR_COMM && MPI_Barrier(NULL) == MPI_ERR_COMM);
	CHECK(!MPI_Error_string(MPI_ERR_TRUNCATE, text, &length) && strstr(text, "TRUNCATE"));
	CHECK(!MPI_Add_error_class(&added) && added > MPI_ERR_LASTCODE);
	CHECK(!MPI_Add_error_code(added, &code) && !MPI_Error_class(code, &class) &&
		class == added);
	CHECK(!MPI_Add_error_string(code, "ours") && !MPI_Error_string(code, text, &length));
	CHECK(!strcmp(text, "ours"));
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void told(void)
{
	int flag = 0, *value, level;

	CHECK(!MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag) && flag &&
		*value >= 32767);
	CHECK(!MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag) && flag);
	CHECK(*value == MPI_ANY_SOURCE);
	CHECK(!MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &value, &flag));
	CHECK(!flag || *value == MPI_PROC_NULL);
	CHECK(!MPI_Query_thread(&level) && level >= MPI_THREAD_SINGLE);
}

/* ---- datatypes ---- */

static void parts(void)
{
	int sizes[2] = {6, 5}, wide[2] = {2, 3}, starts[2] = {1, 2}, n[4], i[16];
	int how[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE};
	int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG},
	    ranks[2] = {1, 1};
	MPI_Aint a[1];
	MPI_Datatype t, of[1];

	CHECK(!MPI_Type_create_subarray(
		2, sizes, wide, starts, MPI_ORDER_FORTRAN, MPI_LOGICAL, &t));
	CHECK(!MPI_Type_get_envelope(t, &n[0], &n[1], &n[2], &n[3]) &&
		n[3] == MPI_COMBINER_SUBARRAY);
	CHECK(!MPI_Type_get_contents(t, n[0], n[1], n[2], i, a, of));
	CHECK(of[0] == MPI_LOGICAL && i[0] == 2 && i[7] == MPI_ORDER_FORTRAN &&
		!MPI_Type_free(&t));
	CHECK(t == MPI_DATATYPE_NULL);
	CHECK(!MPI_Type_create_darray(
		1, 0, 2, sizes, how, arguments, ranks, MPI_ORDER_C, MPI_DOUBLE_INT, &t));
	CHECK(!MPI_Type_get_envelope(t, &n[0], &n[1], &n[2], &n[3]) &&
		n[3] == MPI_COMBINER_DARRAY);
	CHECK(!MPI_Type_get_contents(t, n[0], n[1], n[2], i, a, of) && of[0] == MPI_DOUBLE_INT);
	CHECK(i[5] == MPI_DISTRIBUTE_CYCLIC && i[6] == MPI_DISTRIBUTE_NONE);
	CHECK(i[7] == MPI_DISTRIBUTE_DFLT_DARG && i[11] == MPI_ORDER_C && !MPI_Type_free(&t));
	CHECK(!MPI_Type_get_envelope(MPI_INT, &n[0], &n[1], &n[2], &n[3]) &&
		n[3] == MPI_COMBINER_NAMED);
	CHECK(!MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &t) && t == MPI_REAL8);
}

static void fortran(void)
{
	MPI_Comm copy;
	MPI_Fint words[sizeof(MPI_Status) / sizeof(MPI_Fint)];
	MPI_Status s = {.MPI_SOURCE = 3, .MPI_TAG = 4}, back;

	CHECK(MPI_Comm_c2f(MPI_COMM_WORLD) == 0 && MPI_Comm_f2c(0) == MPI_COMM_WORLD);
	CHECK(MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_NULL)) == MPI_COMM_NULL);
	CHECK(MPI_Type_c2f(MPI_INTEGER) == 7 && MPI_Type_f2c(7) == MPI_INTEGER);
	CHECK(MPI_Op_f2c(MPI_Op_c2f(MPI_MAXLOC)) == MPI_MAXLOC);
	CHECK(MPI_Request_f2c(MPI_Request_c2f(MPI_REQUEST_NULL)) == MPI_REQUEST_NULL);
	CHECK(!MPI_Comm_dup(MPI_COMM_WORLD, &copy) && MPI_Comm_f2c(MPI_Comm_c2f(copy)) == copy);
	CHECK(!MPI_Comm_free(&copy) && copy == MPI_COMM_NULL);
	CHECK(!MPI_Status_c2f(&s, words) && !MPI_Status_f2c(words, &back) && back.MPI_TAG == 4);
}

static int noted;

static void note_error(MPI_Comm *comm, int *error, ...)
{
	noted = *error;
}

/* The constants for Fortran are no statuses. */
static void statuses_ignored(void)
{
	MPI_Fint words[sizeof(MPI_Status) / sizeof(MPI_Fint)];
	MPI_Errhandler notes;
	MPI_Status s = {.MPI_TAG = 4};

	CHECK(MPI_F_STATUS_IGNORE && MPI_F_STATUSES_IGNORE);
	CHECK(MPI_F_STATUS_IGNORE != MPI_F_STATUSES_IGNORE);
	MPI_Comm_create_errhandler(note_error, &notes);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, notes);
	CHECK(MPI_Status_f2c(MPI_F_STATUS_IGNORE, &s) == MPI_ERR_IN_STATUS);
	CHECK(noted == MPI_ERR_IN_STATUS && s.MPI_TAG == 4);
	noted = 0;
	CHECK(MPI_Status_f2c(MPI_F_STATUSES_IGNORE, &s) == MPI_ERR_IN_STATUS);
	CHECK(noted == MPI_ERR_IN_STATUS && s.MPI_TAG == 4);
	noted = 0;
	CHECK(MPI_Status_c2f(MPI_STATUS_IGNORE, words) == MPI_ERR_IN_STATUS);
	CHECK(noted == MPI_ERR_IN_STATUS);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Errhandler_free(&notes);
}

/* ---- arrays of handles ---- */

#define MANY 3000

static void many(void)
{
	static MPI_Request requests[2 * MANY];
	static MPI_Status statuses[2 * MANY];
	static int in[MANY], out[MANY], done[2 * MANY];
	int next = (rank + 1) % size, before = (rank + size - 1) % size, left, count;

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < MANY; i++) {
			out[i] = rank * MANY + i;
			in[i] = -1;
			MPI_Irecv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, i, MPI_COMM_WORLD,
				&requests[i]);
		}
		for (int i = 0; i < MANY; i++)
			MPI_Isend(&out[i], 1, MPI_INT, next, i, MPI_COMM_WORLD,
				&requests[MANY + i]);
		if (!round)
			CHECK(!MPI_Waitall(2 * MANY, requests, statuses));
		for (left = round ? 2 * MANY : 0; left; left -= count)
			CHECK(!MPI_Waitsome(2 * MANY, requests, &count, done, statuses) &&
				count > 0);
		for (int i = 0; i < MANY; i++)
			CHECK(in[i] == before * MANY + i && requests[i] == MPI_REQUEST_NULL);
		for (int i = 0; i < MANY && !round; i++)
			CHECK(statuses[i].MPI_SOURCE == before && statuses[i].MPI_TAG == i);
	}
	CHECK(!MPI_Waitsome(2 * MANY, requests, &count, done, MPI_STATUSES_IGNORE));
	CHECK(count == MPI_UNDEFINED);
}

/* Open MPI looks at the types when the call is complete. */
static void later(void)
{
	MPI_Datatype *types = malloc(2 * size * sizeof(*types)), pair;
	int *numbers = calloc(4 * size, sizeof(int)), *in = calloc(2 * size, sizeof(int));
	int *out = calloc(2 * size, sizeof(int));
	MPI_Request r;
	MPI_Comm copy;

	CHECK(!MPI_Type_contiguous(2, MPI_INT, &pair) && !MPI_Type_commit(&pair));
	for (int i = 0; i < size; i++) {
		types[i] = types[size + i] = pair;
		numbers[i] = 1;
		numbers[size + i] = i * 2 * (int)sizeof(int);
		out[2 * i] = 10 * rank + i;
	}
	CHECK(!MPI_Ialltoallw(out, numbers, numbers + size, types, in, numbers, numbers + size,
		types + size, MPI_COMM_WORLD, &r));
	CHECK(!MPI_Wait(&r, MPI_STATUS_IGNORE) && in[2 * (size - 1)] == 10 * (size - 1) + rank);
	CHECK(!MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, out, numbers, numbers + size,
		types, MPI_COMM_WORLD));
	CHECK(out[0] == rank && !MPI_Type_free(&pair));
	CHECK(!MPI_Comm_idup(MPI_COMM_WORLD, &copy, &r) && !MPI_Wait(&r, MPI_STATUS_IGNORE));
	CHECK(!MPI_Barrier(copy) && !MPI_Comm_free(&copy));
	free(types);
	free(numbers);
	free(in);
	free(out);
}

/* ---- attributes ---- */

static int deleted;

static int delete_value(MPI_Comm comm, int key, void *value, void *extra)
{
	CHECK(extra == &deleted && value == &size);
	deleted++;
	return MPI_SUCCESS;
}

static void attributes(void)
{
	MPI_Comm one, two;
	void *value = NULL;
	int key, flag = 0;

	CHECK(!MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete_value, &key, &deleted));
	CHECK(!MPI_Comm_dup(MPI_COMM_SELF, &one) && !MPI_Comm_set_attr(one, key, &size));
	CHECK(!MPI_Comm_dup(one, &two) && !MPI_Comm_get_attr(two, key, &value, &flag));
	CHECK(flag && value == &size && !MPI_Comm_free(&one) && !MPI_Comm_free(&two) &&
		deleted == 2);
	CHECK(!MPI_Comm_free_keyval(&key) && key == MPI_KEYVAL_INVALID);
}

/* ---- windows ---- */

static MPI_Win window;
static int errors_told;

static void on_window_error(MPI_Win *win, int *code, ...)
{
	CHECK(*win == window && *code == MPI_ERR_OTHER);
	errors_told++;
}

static void windows(void)
{
	int memory[2] = {-1, -1}, next = (rank + 1) % size, *model, flag = 0, given = 50 + rank;
	MPI_Errhandler handler;

	CHECK(!MPI_Win_create(
		memory, sizeof(memory), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window));
	CHECK(!MPI_Win_get_attr(window, MPI_WIN_MODEL, &model, &flag) && flag);
	CHECK(*model == MPI_WIN_UNIFIED || *model == MPI_WIN_SEPARATE);
	CHECK(!MPI_Win_create_errhandler(on_window_error, &handler));
	CHECK(!MPI_Win_set_errhandler(window, handler) && !MPI_Errhandler_free(&handler));
	CHECK(!MPI_Win_call_errhandler(window, MPI_ERR_OTHER) && errors_told == 1);
	CHECK(!MPI_Win_fence(MPI_MODE_NOPRECEDE, window));
	CHECK(!MPI_Put(&given, 1, MPI_INT, next, 1, 1, MPI_INT, window));
	CHECK(!MPI_Win_fence(MPI_MODE_NOSUCCEED | MPI_MODE_NOSTORE, window));
	CHECK(memory[0] == -1 && memory[1] == 50 + (rank + size - 1) % size);
	CHECK(!MPI_Win_lock(MPI_LOCK_SHARED, next, MPI_MODE_NOCHECK, window));
	CHECK(!MPI_Win_unlock(next, window) && !MPI_Win_free(&window) &&
		window == MPI_WIN_NULL);
}

int main(int argc, char **argv)
{
	int sum;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	nobody();
	errors();
	told();
	parts();
	fortran();
	statuses_ignored();
	many();
	later();
	attributes();
	windows();
	sum = rank;
	CHECK(!MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
	CHECK(sum == size * (size - 1) / 2);
	printf("rank %d of %d: done\n", rank, size);
	MPI_Finalize();
	return 0;
}
