/*
 * mpi_lasting.c - an MPI program of several ranks with requests that are none of a single message: persistent ones of
 * collective calls, nonblocking ones of neighbours, those of MPI_Isendrecv, and generalized ones. Some are under way
 * from one round to the next; some are made in a round, and freed by each rank at a time of its own. Each round checks
 * what it gets.
 *
 * MPICH 4.0.2 itself sets no status of MPI_Isendrecv, and crashes when one is with nobody: that is tried with trecr's
 * only.
 *
 * The first round behind a checkpoint or restart is shown by a symbolic link "round.RANK" that is made anew. "ready"
 * after the first round, and "ok" at the end, when the file "go" is there. With "late" rank 1 makes a file "asleep" in
 * its second round, and waits at the FIFO "bed" before it starts what the others have started: each of these makes a
 * file "begun.RANK".
 */
#include <fcntl.h>
#include "mpi_before_4.inc"
#include <string.h>
#include <time.h>

#include "mpi_ranks.h"

enum { RANKS = 16, LARGE = 30000, LIVES = 12, ACROSS_LENGTH = 2 * RANKS };
enum { T_EXCHANGED = 5, T_REPLACED, T_ANY, T_LARGE };

static int left, right, natively;
static int before, behind; /* among all but rank 0 */

static int word(int from, int to, int round)
{
	return (from * RANKS + to) * 1000 + round % 1000;
}

static int all_ranks(void)
{
	return size * (size - 1) / 2;
}

static void complete(MPI_Request *request, unsigned how)
{
	int flag = 0, index = -1, count = 0;
	MPI_Status s;

	switch (how % 5) {
	case 0:
		MPI_Wait(request, &s);
		break;
	case 1:
		while (!flag)
			MPI_Test(request, &flag, &s);
		break;
	case 2:
		MPI_Waitall(1, request, &s);
		break;
	case 3:
		MPI_Waitany(1, request, &index, &s);
		CHECK(index == 0);
		break;
	case 4:
		MPI_Waitsome(1, request, &count, &index, &s);
		CHECK(count == 1 && index == 0);
		break;
	}
}

/* ---- persistent requests of collective calls ---- */

static MPI_Comm other, half, ring, others_ring, between, unused;
static MPI_Request left_over; /* that rank 1 has no more */
static MPI_Datatype pair;
/* Where no types are to be read: it looks as a handle of trecr's. */
static MPI_Datatype *const no_types = (MPI_Datatype *)0x1ce00ffffl;

enum {
	SUM,
	BROADCAST,
	BARRIER,
	GATHERED,
	SCATTERED,
	EXCHANGED,
	TYPED,
	NEIGHBOURS,
	TYPED_NEIGHBOURS,
	PARTS,
	PREFIX,
	IN_PLACE,
	OTHERS_RING,
	HALF,
	ACROSS,
	PARTS_ACROSS,
	ALONE,
	LASTING
};
static MPI_Request lasting[LASTING];
static int started[LASTING];
static int in[LASTING][4 * RANKS], out[LASTING][4 * RANKS];

static int *numbers(int n, int each)
{
	int *a = malloc(n * sizeof(*a));

	for (int i = 0; i < n; i++)
		a[i] = each < 0 ? -each * i : each;
	return a;
}

/* What was told by it is told no more. */
static void spoil(int *a, int n)
{
	memset(a, 0x7f, n * sizeof(*a));
	free(a);
}

static void make_vectors(void)
{
	int *counts = numbers(size, 2), *places = numbers(size, -2);
	MPI_Datatype *types = malloc(size * sizeof(*types));
	int *ones = numbers(size, 1), *bytes = numbers(size, -8);
	MPI_Aint far[2] = {0, 8};

	MPI_Gatherv_init(out[GATHERED], 2, MPI_INT, in[GATHERED], rank ? NULL : counts,
		rank ? NULL : places, MPI_INT, 0, other, MPI_INFO_NULL, &lasting[GATHERED]);
	MPI_Scatterv_init(out[SCATTERED], rank == 1 ? counts : NULL, rank == 1 ? places : NULL,
		MPI_INT, in[SCATTERED], 2, MPI_INT, 1, other, MPI_INFO_NULL,
		&lasting[SCATTERED]);
	MPI_Alltoallv_init(out[EXCHANGED], counts, places, MPI_INT, in[EXCHANGED], counts,
		places, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL, &lasting[EXCHANGED]);
	for (int i = 0; i < size; i++)
		types[i] = pair;
	MPI_Alltoallw_init(out[TYPED], ones, bytes, types, in[TYPED], ones, bytes, types, other,
		MPI_INFO_NULL, &lasting[TYPED]);
	MPI_Neighbor_alltoallw_init(out[TYPED_NEIGHBOURS], ones, far, types,
		in[TYPED_NEIGHBOURS], ones, far, types, ring, MPI_INFO_NULL,
		&lasting[TYPED_NEIGHBOURS]);
	MPI_Reduce_scatter_init(out[PARTS], in[PARTS], counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
		MPI_INFO_NULL, &lasting[PARTS]);
	for (int i = 0; i < size; i++)
		types[i] = MPI_INT;
	MPI_Alltoallw_init(MPI_IN_PLACE, NULL, NULL, no_types, in[IN_PLACE], counts, bytes,
		types, other, MPI_INFO_NULL, &lasting[IN_PLACE]);
	MPI_Neighbor_alltoallw_init(out[OTHERS_RING], counts, far, rank ? types : no_types,
		in[OTHERS_RING], counts, far, rank ? types : no_types, others_ring,
		MPI_INFO_NULL, &lasting[OTHERS_RING]);
	spoil(counts, size);
	spoil(places, size);
	spoil(ones, size);
	spoil(bytes, size);
	spoil((int *)types, size);
}

static void add_twice(void *a, void *b, int *count, MPI_Datatype *type)
{
	(void)type;
	for (int i = 0; i < *count; i++)
		((int *)b)[i] += ((int *)a)[i];
}

/* Either group has as much, however many members it has: the first one has what is left by the others. */
static void make_parts_across(void)
{
	int members, *counts;

	MPI_Comm_size(half, &members);
	counts = numbers(members, 1);
	counts[0] = ACROSS_LENGTH - (members - 1);
	MPI_Reduce_scatter_init(out[PARTS_ACROSS], in[PARTS_ACROSS], counts, MPI_INT, MPI_SUM,
		between, MPI_INFO_NULL, &lasting[PARTS_ACROSS]);
	spoil(counts, members);
}

static void make_lasting(void)
{
	MPI_Op op;

	MPI_Op_create(add_twice, 1, &op);
	MPI_Allreduce_init(out[SUM], in[SUM], 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
		MPI_INFO_NULL, &lasting[SUM]);
	MPI_Bcast_init(
		in[BROADCAST], 2, pair, size - 1, other, MPI_INFO_NULL, &lasting[BROADCAST]);
	MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &lasting[BARRIER]);
	make_vectors();
	MPI_Neighbor_allgather_init(out[NEIGHBOURS], 1, MPI_INT, in[NEIGHBOURS], 1, MPI_INT,
		ring, MPI_INFO_NULL, &lasting[NEIGHBOURS]);
	MPI_Scan_init(out[PREFIX], in[PREFIX], 1, MPI_INT, op, other, MPI_INFO_NULL,
		&lasting[PREFIX]);
	MPI_Allreduce_init(
		out[HALF], in[HALF], 1, MPI_INT, MPI_SUM, half, MPI_INFO_NULL, &lasting[HALF]);
	MPI_Allreduce_init(out[ACROSS], in[ACROSS], 1, MPI_INT, MPI_SUM, between, MPI_INFO_NULL,
		&lasting[ACROSS]);
	MPI_Allreduce_init(out[ALONE], in[ALONE], 1, MPI_INT, MPI_SUM, MPI_COMM_SELF,
		MPI_INFO_NULL, &lasting[ALONE]);
	make_parts_across();
	MPI_Op_free(&op);
}

static void fill(int what, int round)
{
	memset(in[what], 0, sizeof(in[what]));
	for (int i = 0; i < 2 * size; i++)
		out[what][i] = word(rank, i / 2, round) + i % 2;
	if (what == SUM || what == HALF || what == ACROSS || what == PREFIX)
		out[what][0] = rank + round;
	if (what == ALONE)
		out[what][0] = round;
	if (what == IN_PLACE)
		memcpy(in[what], out[what], sizeof(in[what]));
	for (int i = 0; i < 4 && what == BROADCAST && rank == size - 1; i++)
		in[BROADCAST][i] = round + i;
	for (int i = 0; i < 2 * size && what == PARTS; i++)
		out[PARTS][i] = rank * i + round;
	for (int i = 0; i < ACROSS_LENGTH && what == PARTS_ACROSS; i++)
		out[PARTS_ACROSS][i] = rank * i + round;
}

static int sum_of(int first, int step, int round)
{
	int sum = 0;

	for (int i = first; i < size; i += step)
		sum += i + round;
	return sum;
}

/* The first number of this rank's part. */
static int sum_across(int round)
{
	int members, number, first, sum = 0;

	MPI_Comm_size(half, &members);
	MPI_Comm_rank(half, &number);
	first = number ? ACROSS_LENGTH - members + number : 0;
	for (int i = !(rank % 2); i < size; i += 2)
		sum += i * first + round;
	return sum;
}

static int is_exchanged(const int *got, int round)
{
	for (int i = 0; i < 2 * size; i++)
		if (got[i] != word(i / 2, rank, round) + i % 2)
			return 0;
	return 1;
}

/* The neighbours that numbers came from: those on the left first. */
static int is_of_neighbours(const int *got, int round)
{
	return got[0] == word(left, 0, round) && got[1] == word(left, 0, round) + 1 &&
	       got[2] == word(right, 1, round) && got[3] == word(right, 1, round) + 1;
}

static void check_lasting(int what, int round)
{
	const int *got = in[what];

	switch (what) {
	case SUM:
		CHECK(got[0] == sum_of(0, 1, round));
		break;
	case BROADCAST:
		CHECK(got[0] == round && got[3] == round + 3);
		break;
	case GATHERED:
		for (int i = 0; i < size && !rank; i++)
			CHECK(got[2 * i] == word(i, 0, round));
		break;
	case SCATTERED:
		CHECK(got[0] == word(1, rank, round) && got[1] == word(1, rank, round) + 1);
		break;
	case EXCHANGED:
	case TYPED:
	case IN_PLACE:
		CHECK(is_exchanged(got, round));
		break;
	case NEIGHBOURS:
		CHECK(got[0] == word(left, 0, round) && got[1] == word(right, 0, round));
		break;
	case TYPED_NEIGHBOURS:
		/* Of two ranks each is both neighbours of the other, and what it sends to the
		 * one may come as the other's. */
		CHECK(size == 2 || is_of_neighbours(got, round) ||
			got[0] == word(left, 1, round));
		break;
	case OTHERS_RING:
		CHECK(!rank || (got[0] == word(before, 0, round) && got[1] == got[0] + 1));
		break;
	case PARTS:
		CHECK(got[0] == 2 * rank * all_ranks() + size * round);
		break;
	case PREFIX:
		CHECK(got[0] == rank * (rank + 1) / 2 + (rank + 1) * round);
		break;
	case HALF:
		CHECK(got[0] == sum_of(rank % 2, 2, round));
		break;
	case ACROSS:
		CHECK(got[0] == sum_of(!(rank % 2), 2, round));
		break;
	case PARTS_ACROSS:
		CHECK(got[0] == sum_across(round));
		break;
	case ALONE:
		CHECK(got[0] == round);
		break;
	}
}

static void start(int what, int round)
{
	CHECK(!started[what]);
	fill(what, round);
	started[what] = round;
	if (chance(&common, 2))
		MPI_Start(&lasting[what]);
	else
		MPI_Startall(1, &lasting[what]);
}

static void end(int what)
{
	if (!started[what])
		return;
	complete(&lasting[what], chance(&common, 5));
	CHECK(lasting[what] != MPI_REQUEST_NULL);
	check_lasting(what, started[what]);
	started[what] = 0;
}

/* A function of the program's would be called while it stands still for a checkpoint. */
static int may_last(int what)
{
	return what != PREFIX;
}

/* ---- persistent ones that live for some rounds ---- */

static struct {
	MPI_Request request;
	int in, out, until, starts;
} lives[LIVES];

static void live(int round)
{
	int i = round % LIVES;

	if (lives[i].request != MPI_REQUEST_NULL)
		MPI_Request_free(&lives[i].request);
	MPI_Allreduce_init(&lives[i].out, &lives[i].in, 1, MPI_INT, MPI_SUM,
		round % 3 ? other : MPI_COMM_WORLD, MPI_INFO_NULL, &lives[i].request);
	lives[i].until = round + 2 + chance(&own, LIVES - 4);
	lives[i].starts = 0;
	for (i = 0; i < LIVES; i++) {
		int age = (round - i + LIVES) % LIVES;

		if (lives[i].request == MPI_REQUEST_NULL)
			continue;
		if (age <= 2) {
			lives[i].out = rank + round + i;
			MPI_Start(&lives[i].request);
			work_at_random();
			complete(&lives[i].request, age);
			CHECK(lives[i].in == all_ranks() + size * (round + i));
		}
		/* Nobody else knows when. */
		if (age > 2 && round >= lives[i].until)
			MPI_Request_free(&lives[i].request);
	}
}

static int has(const MPI_Status *s, int source, int tag, int count)
{
	int n = -1;

	MPI_Get_count(s, MPI_INT, &n);
	return natively || (s->MPI_SOURCE == source && s->MPI_TAG == tag && n == count);
}

#if MPI_VERSION >= 4
/* ---- a send and a receive by one request ---- */

static struct {
	MPI_Request ring, any, replaced, large, nowhere;
	int in, any_in, any_out, out, changed[2], nothing;
	int large_in[LARGE], large_out[LARGE];
} under;

static void begin_exchange(int round)
{
	under.out = word(rank, right, round);
	under.any_out = word(rank, left, round);
	under.changed[0] = under.out;
	under.changed[1] = round;
	under.nothing = round;
	MPI_Isendrecv(&under.out, 1, MPI_INT, right, T_EXCHANGED, &under.in, 1, MPI_INT, left,
		T_EXCHANGED, other, &under.ring);
	MPI_Isendrecv(&under.any_out, 1, MPI_INT, left, T_ANY + round % 2 * 100, &under.any_in,
		1, MPI_INT, MPI_ANY_SOURCE, T_ANY + round % 2 * 100, other, &under.any);
	MPI_Isendrecv_replace(under.changed, 1, pair, right, T_REPLACED, left, T_REPLACED,
		MPI_COMM_WORLD, &under.replaced);
	for (int i = 0; i < LARGE; i++)
		under.large_out[i] = under.out + 3 * i;
	MPI_Isendrecv(under.large_out, LARGE, MPI_INT, right, T_LARGE, under.large_in, LARGE,
		MPI_INT, left, T_LARGE, other, &under.large);
	under.nowhere = MPI_REQUEST_NULL;
	if (!natively)
		MPI_Isendrecv(&under.out, 1, MPI_INT, MPI_PROC_NULL, 1, &under.nothing, 1,
			MPI_INT, MPI_PROC_NULL, 1, other, &under.nowhere);
}

/* In an order that is not that of the receives. */
static void wait_for_exchange(int round, MPI_Status *s)
{
	MPI_Request all[] = {under.large, under.replaced, under.any, under.ring, under.nowhere};
	int flag = 0, done = 0, count, index, indices[5];
	MPI_Status some[5];

	switch (chance(&common, 4)) {
	case 0:
		MPI_Waitall(5, all, s);
		break;
	case 1:
		while (!flag)
			MPI_Testall(5, all, &flag, s);
		break;
	case 2:
		for (int i = natively; i < 5; i++) {
			MPI_Waitany(5, all, &index, &some[0]);
			CHECK(index >= 0 && index < 5);
			s[index] = some[0];
		}
		MPI_Waitany(5, all, &index, &some[0]);
		CHECK(index == MPI_UNDEFINED);
		break;
	case 3:
		for (done = natively; done < 5; done += count) {
			MPI_Waitsome(5, all, &count, indices, some);
			CHECK(count > 0);
			for (int i = 0; i < count; i++)
				s[indices[i]] = some[i];
		}
		break;
	}
	for (int i = 0; i < 5; i++)
		CHECK(all[i] == MPI_REQUEST_NULL);
	(void)round;
}

static void complete_exchange(int round)
{
	MPI_Status s[5];

	if (chance(&own, 2)) {
		int flag = 0;

		while (!flag)
			MPI_Request_get_status(under.ring, &flag, &s[0]);
		CHECK(has(&s[0], left, T_EXCHANGED, 1));
	}
	wait_for_exchange(round, s);
	CHECK(has(&s[3], left, T_EXCHANGED, 1) && under.in == word(left, rank, round));
	CHECK(has(&s[2], right, T_ANY + round % 2 * 100, 1));
	CHECK(under.any_in == word(right, rank, round));
	CHECK(has(&s[1], left, T_REPLACED, 2));
	CHECK(under.changed[0] == word(left, rank, round) && under.changed[1] == round);
	CHECK(has(&s[0], left, T_LARGE, LARGE));
	for (int i = 0; i < LARGE; i++)
		CHECK(under.large_in[i] == under.in + 3 * i);
	CHECK(under.nothing == round);
}

#else
static void begin_exchange(int round)
{
}

static void complete_exchange(int round)
{
}
#endif

/* ---- generalized ones ---- */

enum { OPEN, COMPLETE, UNASKED, GENERALIZED };
static struct general {
	MPI_Request request, copy;
	int value, freed;
} general[GENERALIZED];

static int query(void *extra, MPI_Status *s)
{
	struct general *g = extra;

	MPI_Status_set_elements(s, MPI_INT, g->value % 50);
	MPI_Status_set_cancelled(s, 0);
	s->MPI_SOURCE = g->value;
	s->MPI_TAG = 7;
	return MPI_SUCCESS;
}

static int forget(void *extra)
{
	((struct general *)extra)->freed++;
	return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
	(void)extra;
	(void)complete;
	return MPI_SUCCESS;
}

static void begin_general(int round)
{
	for (int i = 0; i < GENERALIZED; i++) {
		general[i].value = round + i;
		general[i].freed = 0;
		MPI_Grequest_start(query, forget, cancel, &general[i], &general[i].request);
		general[i].copy = general[i].request;
	}
	MPI_Grequest_complete(general[COMPLETE].request);
	MPI_Request_free(&general[UNASKED].request);
}

static void complete_general(int round)
{
	MPI_Request both[2] = {general[OPEN].request, general[COMPLETE].request};
	int flag = 1, index = -1;
	MPI_Status s[2];

	MPI_Test(&both[0], &flag, &s[0]);
	CHECK(!flag && !general[COMPLETE].freed);
	MPI_Testany(2, both, &index, &flag, &s[1]);
	CHECK(flag && index == 1 && has(&s[1], round + 1, 7, (round + 1) % 50));
	CHECK(general[COMPLETE].freed == 1 && both[1] == MPI_REQUEST_NULL);
	MPI_Grequest_complete(both[0]);
	MPI_Waitall(2, both, s);
	CHECK(has(&s[0], round, 7, round % 50) && general[OPEN].freed == 1);
	MPI_Grequest_complete(general[UNASKED].copy);
	CHECK(general[UNASKED].freed == 1);
}

/* ---- a nonblocking call of neighbours ---- */

static MPI_Request neighbours;
static int theirs[2], mine[2];

static void begin_neighbours(int round)
{
	mine[0] = word(rank, 0, round);
	mine[1] = word(rank, 1, round);
	MPI_Ineighbor_allgather(mine, 1, MPI_INT, theirs, 1, MPI_INT, ring, &neighbours);
}

static void complete_neighbours(int round)
{
	MPI_Wait(&neighbours, MPI_STATUS_IGNORE);
	CHECK(theirs[0] == word(left, 0, round) && theirs[1] == word(right, 0, round));
	MPI_Neighbor_allgather(mine, 1, MPI_INT, theirs, 1, MPI_INT, ring);
	CHECK(theirs[0] == word(left, 0, round) && theirs[1] == word(right, 0, round));
}

/* ---- started by all but one ---- */

static void make_file(const char *name)
{
	int fd = open(name, O_CREAT, 0600);

	CHECK(fd >= 0);
	close(fd);
}

static void start_late(void)
{
	MPI_Request barrier;
	char name[32];
	int bed;

	MPI_Barrier_init(other, MPI_INFO_NULL, &barrier);
	MPI_Barrier(other);
	if (rank == 1) {
		make_file("asleep");
		bed = open("bed", O_RDONLY);
		CHECK(bed >= 0);
		close(bed);
	}
	MPI_Start(&barrier);
	snprintf(name, sizeof(name), "begun.%d", rank);
	make_file(name);
	MPI_Wait(&barrier, MPI_STATUS_IGNORE);
	MPI_Request_free(&barrier);
}

/* ---- rounds ---- */

/* Those of the ring go before what is started there. */
static void begin(int round)
{
	begin_exchange(round);
	begin_general(round);
	begin_neighbours(round);
	for (int i = 0; i < LASTING; i++)
		if (may_last(i) && chance(&common, 3)) {
			start(i, round);
			work_at_random();
		}
}

static void complete_all(int round)
{
	complete_neighbours(round);
	for (int i = 0; i < LASTING; i++)
		end(i);
	complete_exchange(round);
	complete_general(round);
}

static void one_round(int round)
{
	for (int i = 0; i < 4; i++) {
		int what = chance(&common, LASTING);

		work_at_random();
		end(what);
		start(what, round);
		work_at_random();
		if (!may_last(what) || chance(&common, 2))
			end(what);
	}
	live(round);
}

static void make_all(void)
{
	int sources[2], destinations[2];

	left = sources[0] = destinations[0] = (rank + size - 1) % size;
	right = sources[1] = destinations[1] = (rank + 1) % size;
	before = rank == 1 ? size - 1 : left;
	behind = rank == size - 1 ? 1 : right;
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	MPI_Comm_split(other, rank % 2, -rank, &half);
	MPI_Intercomm_create(
		half, 0, MPI_COMM_WORLD, size - 1 - ((size - 1) % 2 == rank % 2), 5, &between);
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, MPI_UNWEIGHTED, 2,
		destinations, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank > 0, &before, MPI_UNWEIGHTED,
		rank > 0, &behind, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &others_ring);
	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	make_lasting();
	for (int i = 0; i < LIVES; i++)
		lives[i].request = MPI_REQUEST_NULL;
	MPI_Comm_dup(MPI_COMM_WORLD, &unused);
	MPI_Barrier_init(unused, MPI_INFO_NULL, &left_over);
	if (rank == 1)
		MPI_Request_free(&left_over);
}

static void free_all(void)
{
	MPI_Comm *all[] = {&other, &half, &ring, &others_ring, &between, &unused};

	if (rank != 1)
		MPI_Request_free(&left_over);
	for (int i = 0; i < LASTING; i++)
		MPI_Request_free(&lasting[i]);
	for (int i = 0; i < LIVES; i++)
		if (lives[i].request != MPI_REQUEST_NULL)
			MPI_Request_free(&lives[i].request);
	for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++)
		MPI_Comm_free(all[i]);
	MPI_Type_free(&pair);
}

int main(int argc, char **argv)
{
	int on = 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	own = rank + 1;
	natively = !getenv("TRECR_STUBS");
	make_all();
	begin(1);
	for (int round = 2; on; round++) {
		the_round = round;
		one_round(round);
		if (argc > 1 && round == 3)
			start_late();
		complete_all(round - 1);
		work_at_random();
		begin(round);
		show_round(round);
		if (round == 2) {
			printf("ready\n");
			fflush(stdout);
		}
		on = access("go", F_OK);
		MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
		if (!on)
			complete_all(round);
	}
	free_all();
	MPI_Finalize();
	printf("ok\n");
	return 0;
}
