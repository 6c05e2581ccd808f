/*
 * messages.c - an MPI program in which something is always under way: each round starts
 * transfers that the next one completes (large and small messages, a reduction), and uses
 * collective calls, a window of each rank's memory and a shared one, persistent requests and a
 * derived datatype.
 *
 * Rounds are made in turns of ROUNDS, until the file "go" is there. Each turn begins with the
 * same numbers and so ends with the same sum of all ranks, which is printed in the end. A rank
 * that gets anything but what it is to get says so, and the program fails.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS 10
#define LARGE  30000 /* numbers of a message that is not sent before somebody receives it */
#define STRIDE 3
#define WINDOW 4096 /* bytes: MPICH 4.0.2 mixes up windows of 5 ranks of 40 bytes each */

enum { TAG_LARGE, TAG_SMALL, TAG_TOKEN, TAG_THIRD };

static int rank, size, behind, before;

static struct {
	uint64_t sum;
	MPI_Comm ring; /* all ranks, the other way round */
	int ring_behind, ring_before;
	MPI_Win window, shared;
	uint64_t *mine, *node; /* memory of the two windows */
	MPI_Datatype third;    /* each third number */
	MPI_Request token[2];  /* persistent */
	uint64_t token_in, token_out;

	/* Begun in one round and completed in the next. */
	MPI_Request pending[3];
	uint64_t large_in[LARGE], large_out[LARGE], part, total;
} s;

static void check_message(const char *what, int round, uint64_t got, uint64_t wanted)
{
	if (got == wanted)
		return;
	printf("rank %d, round %d, %s: got %llu, wanted %llu\n", rank, round, what,
		(unsigned long long)got, (unsigned long long)wanted);
	fflush(stdout);
	MPI_Abort(MPI_COMM_WORLD, 3);
}

static uint64_t mix(uint64_t a, uint64_t b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15ull;
	return a ^ a >> 29;
}

static uint64_t number(int of, int round)
{
	return mix(mix(of, 1), round) >> 8;
}

static uint64_t number_of_all(int round)
{
	uint64_t total = 0;

	for (int i = 0; i < size; i++)
		total += number(i, round);
	return total;
}

static void prepare(void)
{
	MPI_Comm node;
	MPI_Aint bytes;
	int unit, in_ring;

	behind = (rank + 1) % size;
	before = (rank + size - 1) % size;
	MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &s.ring);
	MPI_Comm_rank(s.ring, &in_ring);
	s.ring_behind = (in_ring + 1) % size;
	s.ring_before = (in_ring + size - 1) % size;
	MPI_Win_allocate(
		WINDOW, sizeof(*s.mine), MPI_INFO_NULL, MPI_COMM_WORLD, &s.mine, &s.window);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Win_allocate_shared(rank ? 0 : size * sizeof(*s.node), sizeof(*s.node),
		MPI_INFO_NULL, node, &s.node, &s.shared);
	MPI_Win_shared_query(s.shared, 0, &bytes, &unit, &s.node);
	MPI_Type_vector(LARGE / STRIDE, 1, STRIDE, MPI_UINT64_T, &s.third);
	MPI_Type_commit(&s.third);
	MPI_Recv_init(
		&s.token_in, 1, MPI_UINT64_T, before, TAG_TOKEN, MPI_COMM_WORLD, &s.token[0]);
	MPI_Send_init(
		&s.token_out, 1, MPI_UINT64_T, behind, TAG_TOKEN, MPI_COMM_WORLD, &s.token[1]);
}

/* Nobody has asked for the small one when it arrives. */
static void begin_transfers(int round)
{
	uint64_t small = number(rank, round);

	for (int i = 0; i < LARGE; i++)
		s.large_out[i] = small + i;
	MPI_Irecv(s.large_in, LARGE, MPI_UINT64_T, s.ring_before, TAG_LARGE, s.ring,
		&s.pending[0]);
	MPI_Isend(s.large_out, LARGE, MPI_UINT64_T, s.ring_behind, TAG_LARGE, s.ring,
		&s.pending[1]);
	s.part = small;
	MPI_Iallreduce(
		&s.part, &s.total, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD, &s.pending[2]);
	MPI_Send(&small, 1, MPI_UINT64_T, behind, TAG_SMALL, MPI_COMM_WORLD);
}

static void complete_transfers(int round)
{
	uint64_t small;
	MPI_Status status;

	MPI_Recv(&small, 1, MPI_UINT64_T, MPI_ANY_SOURCE, TAG_SMALL, MPI_COMM_WORLD, &status);
	check_message("source", round, status.MPI_SOURCE, before);
	check_message("small message", round, small, number(before, round));
	MPI_Waitall(3, s.pending, MPI_STATUSES_IGNORE);
	/* In the ring, the rank behind comes before. */
	for (int i = 0; i < LARGE; i++)
		check_message("large message", round, s.large_in[i], number(behind, round) + i);
	check_message("begun reduction", round, s.total, number_of_all(round));
	s.sum = mix(s.sum, s.large_in[LARGE - 1] + s.total + small);
}

static void use_persistent_requests(int round)
{
	s.token_out = number(rank, round) + 1;
	MPI_Startall(2, s.token);
	MPI_Waitall(2, s.token, MPI_STATUSES_IGNORE);
	check_message("persistent request", round, s.token_in, number(before, round) + 1);
}

/* Each rank's number goes into all windows, and into the shared one, which only rank 0 has read
 * when all have written. */
static void use_windows(int round)
{
	uint64_t value = number(rank, round) + 2, total = 0;

	MPI_Win_fence(0, s.window);
	for (int i = 0; i < size; i++)
		MPI_Put(&value, 1, MPI_UINT64_T, i, rank, 1, MPI_UINT64_T, s.window);
	MPI_Win_fence(0, s.window);
	for (int i = 0; i < size; i++)
		check_message("window", round, s.mine[i], number(i, round) + 2);
	MPI_Win_fence(0, s.shared);
	s.node[rank] = value;
	MPI_Win_fence(0, s.shared);
	for (int i = 0; i < size; i++)
		total += s.node[i];
	check_message("shared window", round, total, number_of_all(round) + 2 * size);
}

static void use_types(int round)
{
	static uint64_t in[LARGE / STRIDE];
	MPI_Request request;

	MPI_Irecv(
		in, LARGE / STRIDE, MPI_UINT64_T, before, TAG_THIRD, MPI_COMM_WORLD, &request);
	MPI_Ssend(s.large_in, 1, s.third, behind, TAG_THIRD, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	/* The rank before has last received from us. */
	for (int i = 0; i < LARGE / STRIDE; i++)
		check_message("derived type", round, in[i], number(rank, round) + i * STRIDE);
}

static void use_collectives(int round)
{
	uint64_t out[size], in[size], all;

	for (int i = 0; i < size; i++)
		out[i] = number(rank, round) + i;
	MPI_Alltoall(out, 1, MPI_UINT64_T, in, 1, MPI_UINT64_T, s.ring);
	for (int i = 0; i < size; i++)
		check_message("alltoall", round, in[i],
			number(size - 1 - i, round) + (uint64_t)(size - 1 - rank));
	MPI_Allreduce(&s.sum, &all, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
	s.sum = mix(s.sum, all);
}

static uint64_t turn(void)
{
	uint64_t all;

	s.sum = rank;
	for (int round = 0; round < ROUNDS; round++) {
		/* The transfers of the last round are of the turn before. */
		complete_transfers((round + ROUNDS - 1) % ROUNDS);
		use_types((round + ROUNDS - 1) % ROUNDS);
		begin_transfers(round);
		use_persistent_requests(round);
		use_windows(round);
		use_collectives(round);
	}
	MPI_Reduce(&s.sum, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	return all;
}

/* Rank 0 sees the file. */
static int is_to_end(void)
{
	int end = access("go", F_OK) == 0;

	MPI_Bcast(&end, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return end;
}

int main(int argc, char *argv[])
{
	uint64_t first, sum;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	prepare();
	begin_transfers(ROUNDS - 1);
	first = turn();
	if (!rank) {
		printf("ready\n");
		fflush(stdout);
	}
	do {
		sum = turn();
		check_message("sum of the turn", ROUNDS, sum, rank ? sum : first);
	} while (!is_to_end());
	complete_transfers(ROUNDS - 1);
	if (!rank)
		printf("%d ranks, %016llx\n", size, (unsigned long long)sum);
	MPI_Win_free(&s.window);
	MPI_Win_free(&s.shared);
	MPI_Request_free(&s.token[0]);
	MPI_Request_free(&s.token[1]);
	MPI_Finalize();
	return 0;
}
