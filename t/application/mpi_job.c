/*
 * mpi_job.c - an MPI program of several ranks that send each other no messages: collective calls on communicators
 * of many kinds, some made and freed in each round, between stretches of work of any length. Each round checks
 * what it gets. The first round behind a checkpoint or restart is shown by a symbolic link "round.RANK" that is
 * made anew. "ready" after the first round, and "ok" at the end, when the file "go" is there.
 *
 * With the name of a function a rank of an odd number calls that first, which leaves something in the library; with
 * "late" it makes a file "asleep" in its second round, and waits at the FIFO "bed". With "between" the ranks of odd
 * numbers are late for a communicator between two groups; with "apart" rank 0 has much to do by itself, while others
 * wait for it; with "copying" all ranks have begun MPI_Comm_idup, and call nothing else until the file "awake" is
 * there.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "mpi_ranks.h"

/* ---- time that passes ---- */

/* Until somebody opens the FIFO "bed". */
static void sleep_late(void)
{
	int asleep = open("asleep", O_CREAT, 0600), bed = open("bed", O_RDONLY);

	CHECK(asleep >= 0 && bed >= 0);
	close(asleep);
	close(bed);
}

static void work(int late)
{
	work_at_random();
	if (late && access("asleep", F_OK))
		sleep_late();
}

/* ---- what is held all the time ---- */

/* The first rank of the other half, which is the last one there. */
#define LEADER (size - 1 - ((size - 1) % 2 == rank % 2))

static MPI_Comm copy, half, grid, ring, reversed, of_some, none, between;
static MPI_Datatype pair;
static MPI_Op maximum_of_pairs;
static MPI_Group evens;
static int key, deleted;

static void larger_pair(void *in, void *out, int *count, MPI_Datatype *type)
{
	int *a = in, *b = out;

	CHECK(*type == pair);
	for (int i = 0; i < *count; i++)
		if (a[2 * i] > b[2 * i])
			b[2 * i] = a[2 * i], b[2 * i + 1] = a[2 * i + 1];
}

static int delete_attribute(MPI_Comm comm, int k, void *value, void *extra)
{
	deleted++;
	return MPI_SUCCESS;
}

static void make_topologies(void)
{
	int sizes[1] = {size}, periods[1] = {1};
	int left = (rank + size - 1) % size, right = (rank + 1) % size;
	int sources[2] = {left, right}, destinations[2] = {right, left};

	MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, periods, 0, &grid);
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, MPI_UNWEIGHTED, 2,
		destinations, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
}

static void make_all(void)
{
	MPI_Group all;
	int ranks[64], n = 0;

	MPI_Comm_group(MPI_COMM_WORLD, &all);
	for (int i = 0; i < size; i += 2)
		ranks[n++] = i;
	MPI_Group_incl(all, n, ranks, &evens);
	MPI_Group_free(&all);
	MPI_Comm_dup(MPI_COMM_WORLD, &copy);
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_attribute, &key, NULL);
	MPI_Comm_set_attr(copy, key, &key);
	MPI_Comm_set_name(copy, "the copy");
	MPI_Comm_split(copy, rank % 2, -rank, &half);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
	MPI_Comm_create(MPI_COMM_WORLD, evens, &of_some);
	MPI_Comm_split(MPI_COMM_WORLD, rank ? MPI_UNDEFINED : 0, 0, &none);
	make_topologies();
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, LEADER, 5, &between);
	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	MPI_Op_create(larger_pair, 1, &maximum_of_pairs);
}

static void free_all(void)
{
	MPI_Comm *all[] = {&half, &reversed, &of_some, &none, &grid, &ring, &between, &copy};

	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (*all[i] != MPI_COMM_NULL)
			MPI_Comm_free(all[i]);
	CHECK(deleted == 1);
	MPI_Comm_free_keyval(&key);
	MPI_Type_free(&pair);
	MPI_Op_free(&maximum_of_pairs);
	MPI_Group_free(&evens);
}

/* ---- a round ---- */

static void sums(int round)
{
	int value = rank + round, sum = 0, place = -1, n = 0, wanted = 0;

	MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, copy);
	CHECK(sum == size * (size - 1) / 2 + size * round);
	MPI_Comm_size(half, &n);
	CHECK(n == (size + 1 - rank % 2) / 2);
	for (int i = rank % 2; i < size; i += 2)
		wanted += i + round;
	MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, half);
	CHECK(sum == wanted);
	MPI_Scan(&rank, &place, 1, MPI_INT, MPI_MAX, reversed);
	CHECK(place == size - 1);
	MPI_Comm_rank(reversed, &place);
	CHECK(place == size - 1 - rank);
}

static void pairs(int round)
{
	int mine[2] = {(rank * 7 + round) % size, rank}, best[2] = {0};

	MPI_Allreduce(mine, best, 1, pair, maximum_of_pairs, MPI_COMM_WORLD);
	CHECK(best[0] <= size - 1 && (best[1] * 7 + round) % size == best[0]);
}

static void neighbours(int round)
{
	int mine = 100 * round + rank, theirs[2] = {-1, -1}, at[1] = {-1};

	MPI_Neighbor_allgather(&mine, 1, MPI_INT, theirs, 1, MPI_INT, ring);
	CHECK(theirs[0] == 100 * round + (rank + size - 1) % size);
	CHECK(theirs[1] == 100 * round + (rank + 1) % size);
	MPI_Neighbor_allgather(&mine, 1, MPI_INT, theirs, 1, MPI_INT, grid);
	CHECK(theirs[0] == 100 * round + (rank + size - 1) % size);
	MPI_Cart_coords(grid, rank, 1, at);
	CHECK(at[0] == rank);
}

static void some_only(int round)
{
	int value = rank == 0 ? round : -1, n = -1;

	CHECK((of_some != MPI_COMM_NULL) == (rank % 2 == 0));
	if (of_some != MPI_COMM_NULL)
		MPI_Bcast(&value, 1, MPI_INT, 0, of_some);
	CHECK(value == (rank % 2 ? -1 : round));
	if (none != MPI_COMM_NULL)
		MPI_Barrier(none);
	MPI_Group_size(evens, &n);
	CHECK(n == (size + 1) / 2);
}

/* Communicators of one round, freed in an order of each rank's own where none is needed. */
static void passing(int round)
{
	MPI_Comm first, second = MPI_COMM_NULL;
	int n = -1, value = round;

	MPI_Comm_split(half, round % 2 && rank < size / 2, rank, &first);
	if (rank % 2 == 0)
		MPI_Comm_create_group(MPI_COMM_WORLD, evens, round % 100, &second);
	MPI_Bcast(&value, 1, MPI_INT, 0, first);
	CHECK(value == round);
	if (second != MPI_COMM_NULL) {
		MPI_Comm_size(second, &n);
		CHECK(n == (size + 1) / 2);
		MPI_Comm_free(&second);
	}
	MPI_Comm_free(&first);
}

/* Between the ranks of even numbers and the others. */
static void two_groups(int round)
{
	int value = rank + round, sum = 0, wanted = 0, n = -1, there = -1;
	MPI_Comm again, all;

	MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, between);
	for (int i = !(rank % 2); i < size; i += 2)
		wanted += i + round;
	CHECK(sum == wanted);
	MPI_Comm_remote_size(between, &there);
	CHECK(there == (size + rank % 2) / 2);
	MPI_Comm_dup(between, &again);
	work(0);
	MPI_Barrier(again);
	MPI_Intercomm_merge(again, rank % 2, &all);
	MPI_Comm_free(&again);
	MPI_Comm_size(all, &n);
	CHECK(n == size);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all);
	CHECK(sum == size * (size - 1) / 2);
	MPI_Comm_free(&all);
	/* One half may be late. */
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, LEADER, 6, &again);
	MPI_Comm_free(&again);
}

static void large(int round)
{
	enum { COUNT = 20000 };
	static double in[COUNT], out[COUNT];
	static int counts[64], places[64];

	for (int i = 0; i < COUNT; i++)
		in[i] = i * (rank + 1.0) + round;
	MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	CHECK(out[COUNT - 1] == (COUNT - 1) * (size * (size + 1) / 2.0) + size * (double)round);
	for (int i = 0; i < size; i++)
		counts[i] = COUNT / size, places[i] = i * (COUNT / size);
	MPI_Gatherv(in, COUNT / size, MPI_DOUBLE, out, counts, places, MPI_DOUBLE, round % size,
		copy);
	MPI_Alltoallv(
		in, counts, places, MPI_DOUBLE, out, counts, places, MPI_DOUBLE, reversed);
}

static void one_round(int round, int late)
{
	static void (*const parts[])(int) = {
		sums, pairs, neighbours, some_only, passing, large, two_groups};

	for (int i = 0; i < 7; i++) {
		work(late && round > 1);
		parts[chance(&common, sizeof(parts) / sizeof(*parts))](round);
	}
}

/* How often this thread has slept. */
static long naps(void)
{
	struct rusage usage;

	CHECK(!getrusage(RUSAGE_THREAD, &usage));
	return usage.ru_nvcsw;
}

/* Until one of the members was kept in front of a call. */
static void call_until_kept(MPI_Comm comm)
{
	int kept, any = 0;
	long before;

	while (!any) {
		before = naps();
		MPI_Barrier(comm);
		kept = naps() - before > 3;
		MPI_Allreduce(&kept, &any, 1, MPI_INT, MPI_MAX, comm);
	}
}

/*
 * The ranks of odd numbers come late to a call in which the others wait for them already: they make a file "asleep",
 * and call on a communicator of their own until they are kept in front of such a call.
 */
static void make_between(void)
{
	MPI_Comm within, made;

	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &within);
	if (rank % 2) {
		close(open("asleep", O_CREAT, 0600));
		call_until_kept(within);
	}
	MPI_Intercomm_create(within, 0, MPI_COMM_WORLD, rank % 2 == 0, 7, &made);
	MPI_Barrier(made);
	MPI_Comm_free(&made);
	MPI_Comm_free(&within);
}

/*
 * The last ranks call on a communicator of theirs until they are kept in front of such a call, and say so by a file
 * "awake". Rank 0 calls on one of its own until then, and often after that, while rank 1 waits for all.
 */
static void call_apart(void)
{
	enum { OFTEN = 50000 };
	MPI_Comm within;

	MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? rank : 2, rank, &within);
	if (rank > 1) {
		close(open("asleep", O_CREAT, 0600));
		call_until_kept(within);
		close(open("awake", O_CREAT, 0600));
	}
	if (!rank) {
		while (access("awake", F_OK))
			MPI_Barrier(within);
		for (int i = 0; i < OFTEN; i++)
			MPI_Barrier(within);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Comm_free(&within);
}

/* Each half backwards, so that no rank is what it is elsewhere. */
static void make_copy(void)
{
	MPI_Comm backwards, copied;
	MPI_Request request;
	char asleep[32];
	int compared, number, below, left, sum = 0;

	snprintf(asleep, sizeof(asleep), "asleep.%d", rank);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &backwards);
	MPI_Comm_idup(backwards, &copied, &request);
	close(open(asleep, O_CREAT, 0600));
	while (access("awake", F_OK))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Comm_compare(backwards, copied, &compared);
	MPI_Comm_rank(copied, &number);
	MPI_Comm_size(copied, &below);
	CHECK(compared == MPI_CONGRUENT && number == below - 1 - rank / 2);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, copied);
	CHECK(sum == below * (below - 1) + below * (rank % 2));
	MPI_Sendrecv(&rank, 1, MPI_INT, (number + 1) % below, 0, &left, 1, MPI_INT,
		(number + below - 1) % below, 0, copied, MPI_STATUS_IGNORE);
	CHECK(left == (rank + 2 < size ? rank + 2 : rank % 2));
	MPI_Comm_free(&copied);
	MPI_Comm_free(&backwards);
}

static void leave(const char *function)
{
	int provided;

	if (!strcmp(function, "between"))
		make_between();
	if (!strcmp(function, "copying"))
		make_copy();
	if (!strcmp(function, "apart"))
		call_apart();
	if (!strcmp(function, "MPI_T_init_thread") && rank % 2)
		CHECK(!MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
}

int main(int argc, char **argv)
{
	int on = 1, late, provided;

	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
	MPI_Pcontrol(1); /* of profilers: a library without one does nothing */
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	own = rank + 1;
	late = argc > 1 && !strcmp(argv[1], "late") && rank % 2;
	if (argc > 1)
		leave(argv[1]);
	make_all();
	for (int round = 1; on; round++) {
		one_round(round, late);
		the_round = round;
		show_round(round);
		END_ROUND(MPI_COMM_WORLD, round, on);
	}
	free_all();
	MPI_Finalize();
	printf("ok\n");
	return 0;
}
