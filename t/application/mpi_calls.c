/*
 * mpi_calls.c - an MPI program that uses a little of each family of calls and checks what it
 * gets, above all where the library calls the program or hands out what it compares later:
 * operations, attributes, error handlers, generalized requests, weights of graphs. Prints "rank
 * N of M: done", and how often a profiler has seen MPI_Allreduce.
 *
 * With "abort" it ends by MPI_Abort with 74, with text of its own not written yet.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_short_program.h"

/* ---- a profiler ---- */

static int seen;

int MPI_Allreduce(
	const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	seen++;
	return PMPI_Allreduce(in, out, count, type, op, comm);
}

/* ---- messages and types ---- */

static void messages(void)
{
	int next = (rank + 1) % size, before = (rank + size - 1) % size, in = -1, out = rank;
	int column[4] = {0}, table[4][3], flag = 0, count;
	MPI_Request requests[2];
	MPI_Status status[2];
	MPI_Datatype third;
	MPI_Message message;

	MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &requests[0]);
	MPI_Issend(&out, 1, MPI_INT, next, 5, MPI_COMM_WORLD, &requests[1]);
	MPI_Waitall(2, requests, status);
	CHECK(in == before && status[0].MPI_SOURCE == before && status[0].MPI_TAG == 5);
	for (int i = 0; i < 12; i++)
		table[i / 3][i % 3] = 100 * rank + i;
	MPI_Type_vector(4, 1, 3, MPI_INT, &third);
	MPI_Type_commit(&third);
	MPI_Isend(&table[0][1], 1, third, next, 6, MPI_COMM_WORLD, &requests[0]);
	while (!flag)
		MPI_Improbe(before, 6, MPI_COMM_WORLD, &flag, &message, status);
	MPI_Get_count(status, MPI_INT, &count);
	CHECK(count == 4);
	MPI_Mrecv(column, 4, MPI_INT, &message, MPI_STATUS_IGNORE);
	CHECK(column[0] == 100 * before + 1 && column[3] == 100 * before + 10);
	MPI_Wait(requests, MPI_STATUS_IGNORE);
	MPI_Type_free(&third);
}

/* ---- what the library calls ---- */

static void twice(void *in, void *out, int *count, MPI_Datatype *type)
{
	for (int i = 0; i < *count; i++)
		((int *)out)[i] += 2 * ((int *)in)[i];
}

static void most(void *in, void *out, int *count, MPI_Datatype *type)
{
	int largest = 0;

	/* A call in the middle of one. */
	MPI_Type_size(*type, &largest);
	for (int i = 0; i < *count; i++)
		if (((int *)in)[i] > ((int *)out)[i])
			((int *)out)[i] = ((int *)in)[i];
}

static void operations(void)
{
	int one = rank + 1, sum = 0, top = 0;
	MPI_Op op;

	MPI_Op_create(most, 1, &op);
	MPI_Allreduce(&one, &top, 1, MPI_INT, op, MPI_COMM_WORLD);
	CHECK(top == size);
	MPI_Op_free(&op);
	MPI_Op_create(twice, 0, &op);
	sum = 1;
	MPI_Reduce_local(&one, &sum, 1, MPI_INT, op);
	CHECK(sum == 2 * rank + 3);
	MPI_Op_free(&op);
	MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	CHECK(one == size * (size + 1) / 2);
}

static int deleted;

static int copy_one_more(
	MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag)
{
	*(char **)copy = (char *)value + *(int *)extra;
	*flag = 1;
	return MPI_SUCCESS;
}

static int count_deleted(MPI_Comm comm, int key, void *value, void *extra)
{
	deleted++;
	return MPI_SUCCESS;
}

static void attributes(void)
{
	int key, duplicated, flag, step = 3, *top;
	char *value;
	MPI_Comm comm;

	MPI_Comm_create_keyval(copy_one_more, count_deleted, &key, &step);
	MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &duplicated, NULL);
	MPI_Comm_set_attr(MPI_COMM_WORLD, key, (void *)40);
	MPI_Comm_set_attr(MPI_COMM_WORLD, duplicated, (void *)50);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_get_attr(comm, key, &value, &flag);
	CHECK(flag && value == (char *)43);
	MPI_Comm_get_attr(comm, duplicated, &value, &flag);
	CHECK(flag && value == (char *)50);
	MPI_Comm_get_attr(comm, MPI_TAG_UB, &top, &flag);
	CHECK(flag && *top >= 32767);
	MPI_Comm_free(&comm);
	CHECK(deleted == 1);
	MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
	MPI_Comm_delete_attr(MPI_COMM_WORLD, duplicated);
	MPI_Comm_free_keyval(&key);
	MPI_Comm_free_keyval(&duplicated);
	CHECK(deleted == 2);
}

static int handled;

static void handle(MPI_Comm *comm, int *error, ...)
{
	int class;

	MPI_Error_class(*error, &class);
	handled = class;
}

static void errors(void)
{
	MPI_Errhandler handler;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_create_errhandler(handle, &handler);
	MPI_Comm_set_errhandler(comm, handler);
	MPI_Errhandler_free(&handler);
	MPI_Send(&rank, 1, MPI_INT, size + 7, 0, comm);
	CHECK(handled == MPI_ERR_RANK);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	CHECK(MPI_Send(&rank, -1, MPI_INT, 0, 0, comm) != MPI_SUCCESS);
	MPI_Comm_free(&comm);
}

static int query(void *extra, MPI_Status *status)
{
	MPI_Status_set_elements(status, MPI_INT, 11);
	MPI_Status_set_cancelled(status, 0);
	return MPI_SUCCESS;
}

static int let_go(void *extra)
{
	++*(int *)extra;
	return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
	return MPI_SUCCESS;
}

static void generalized(void)
{
	int freed = 0, count = 0;
	MPI_Request request;
	MPI_Status status;

	MPI_Grequest_start(query, let_go, cancel, &freed, &request);
	MPI_Grequest_complete(request);
	MPI_Wait(&request, &status);
	MPI_Get_count(&status, MPI_INT, &count);
	CHECK(count == 11 && freed == 1);
}

/* ---- graphs, windows, threads ---- */

static void graphs(void)
{
	int next = (rank + 1) % size, before = (rank + size - 1) % size, in, out, weighted;
	int weight = rank + 10, source = -1, source_weight = -1, target = -1;
	MPI_Comm ring;

	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next,
		MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
	MPI_Dist_graph_neighbors_count(ring, &in, &out, &weighted);
	CHECK(in == 1 && out == 1 && !weighted);
	MPI_Dist_graph_neighbors(ring, 1, &source, MPI_UNWEIGHTED, 1, &target, MPI_UNWEIGHTED);
	CHECK(source == before && target == next);
	MPI_Comm_free(&ring);
	MPI_Dist_graph_create(
		MPI_COMM_WORLD, 1, &rank, (int[]){1}, &next, &weight, MPI_INFO_NULL, 0, &ring);
	MPI_Dist_graph_neighbors(ring, 1, &source, &source_weight, 1, &target, &weight);
	CHECK(source == before && source_weight == before + 10 && weight == rank + 10);
	MPI_Neighbor_alltoall(&rank, 1, MPI_INT, &source, 1, MPI_INT, ring);
	CHECK(source == before);
	MPI_Comm_free(&ring);
}

static void windows(void)
{
	int next = (rank + 1) % size, before = (rank + size - 1) % size, *mine, old = -1;
	MPI_Win window;

	MPI_Win_allocate(4096, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &window);
	mine[0] = mine[1] = 0;
	MPI_Win_fence(0, window);
	MPI_Put(&rank, 1, MPI_INT, next, 0, 1, MPI_INT, window);
	MPI_Win_fence(0, window);
	CHECK(mine[0] == before);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
	MPI_Fetch_and_op(&(int){1}, &old, MPI_INT, 0, 1, MPI_SUM, window);
	MPI_Win_unlock(0, window);
	CHECK(old >= 0 && old < size);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(rank || mine[1] == size);
	MPI_Win_free(&window);
}

static void *exchange(void *argument)
{
	MPI_Comm comm = *(MPI_Comm *)argument;
	int next = (rank + 1) % size, before = (rank + size - 1) % size, in;

	for (int i = 0; i < 200; i++) {
		MPI_Sendrecv(&i, 1, MPI_INT, next, i, &in, 1, MPI_INT, before, i, comm,
			MPI_STATUS_IGNORE);
		CHECK(in == i);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t thread[3];
	MPI_Comm comm[3];

	for (int i = 0; i < 3; i++) {
		MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm[i]);
		CHECK(!pthread_create(&thread[i], NULL, exchange, &comm[i]));
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(thread[i], NULL);
		MPI_Comm_free(&comm[i]);
	}
}

int main(int argc, char *argv[])
{
	int level;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(level == MPI_THREAD_MULTIPLE);
	messages();
	operations();
	attributes();
	errors();
	generalized();
	graphs();
	windows();
	threads();
	printf("rank %d of %d: done, %d seen\n", rank, size, seen);
	if (argc > 1 && !strcmp(argv[1], "wait"))
		for (int x;;)
			MPI_Recv(&x, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (argc > 1 && !strcmp(argv[1], "abort"))
		MPI_Abort(MPI_COMM_WORLD, 74);
	MPI_Finalize();
	return 0;
}
