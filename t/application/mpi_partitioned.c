/*
 * mpi_partitioned.c - an MPI program whose ranks send each other partitioned messages, round after round: two at a time with the same tag, as many
 * partitions on one side as the other does not have, of a datatype with gaps, on a communicator that is freed in some rounds, from requests that are
 * made again in some. "ready" after the first round. Rounds are shown as in mpi_ranks.h; "ok" at the end, when the file "go" is there.
 *
 * With "asleep" some partitions of one message are ready, and all of another one whose receive has not been started, when all wait for the file "awake":
 * each rank shows that by a file "asleep.RANK". With "waiting", which is for three ranks, rank 0 waits for a message of rank 2, which sleeps so, on a
 * communicator that has been freed, and rank 1 is in a collective call.
 */
#include <fcntl.h>
#include <mpi.h>
#include <string.h>

#include "mpi_ranks.h"

enum { SENT_PARTS = 12, GOT_PARTS = 8, ELEMENTS = 2400, TAG = 3, BOTH = 2 };

static struct {
	int value, gap;
} out[BOTH][ELEMENTS], in[BOTH][ELEMENTS];
static MPI_Request sends[BOTH], receives[BOTH];
static MPI_Datatype gapped;
static int to, from;

static int value_of(int source, int round, int which, int i)
{
	return source * 1000003 + round * 7919 + which * 31337 + i;
}

static void make_requests(void)
{
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Type_create_resized(MPI_INT, 0, sizeof(**out), &gapped);
	MPI_Type_commit(&gapped);
	for (int i = 0; i < BOTH; i++) {
		CHECK(!MPI_Psend_init(out[i], SENT_PARTS, ELEMENTS / SENT_PARTS, gapped, to,
			TAG, comm, MPI_INFO_NULL, &sends[i]));
		CHECK(!MPI_Precv_init(in[i], GOT_PARTS, ELEMENTS / GOT_PARTS, gapped, from, TAG,
			comm, MPI_INFO_NULL, &receives[i]));
	}
	MPI_Type_free(&gapped);
	MPI_Comm_free(&comm);
}

static void free_requests(void)
{
	for (int i = 0; i < BOTH; i++) {
		CHECK(!MPI_Request_free(&sends[i]) && sends[i] == MPI_REQUEST_NULL);
		CHECK(!MPI_Request_free(&receives[i]));
	}
}

static void fill_part(int which, int round, int part)
{
	enum { EACH = ELEMENTS / SENT_PARTS };

	for (int i = part * EACH; i < (part + 1) * EACH; i++) {
		out[which][i].value = value_of(rank, round, which, i);
		out[which][i].gap = -1;
	}
}

/* What has been ready may not be changed before it is complete, so all is cleared when it is. */
static void ready_parts(int which, int round, int first, int step)
{
	int parts[SENT_PARTS], n = 0;

	for (int i = first; i < SENT_PARTS; i += step) {
		fill_part(which, round, i);
		parts[n++] = i;
	}
	if (step == 1)
		CHECK(!MPI_Pready_range(first, SENT_PARTS - 1, sends[which]));
	else if (round % 2)
		CHECK(!MPI_Pready_list(n, parts, sends[which]));
	for (int i = n; step > 1 && round % 2 == 0 && i--;)
		CHECK(!MPI_Pready(parts[i], sends[which]));
}

static void check_received(int which, int round, const MPI_Status *status)
{
	int count = 0;

	for (int i = 0; i < ELEMENTS; i++) {
		CHECK(in[which][i].value == value_of(from, round, which, i));
		CHECK(in[which][i].gap == 0);
	}
	MPI_Get_count(status, MPI_INT, &count);
	CHECK(count == ELEMENTS && status->MPI_SOURCE == from && status->MPI_TAG == TAG);
	memset(in[which], 0, sizeof(in[which]));
}

static void await_parts(int which)
{
	int flag = 0;

	for (int i = GOT_PARTS; i--;)
		for (flag = 0; !flag;)
			CHECK(!MPI_Parrived(receives[which], i, &flag));
}

static void finish_round(int round)
{
	MPI_Request all[2 * BOTH] = {sends[0], receives[1], sends[1], receives[0]};
	MPI_Status statuses[2 * BOTH];
	int flag = 1;

	if (round % 3 == 0)
		await_parts(round % 2);
	CHECK(!MPI_Waitall(2 * BOTH, all, statuses));
	CHECK(all[0] == sends[0] && all[1] == receives[1]);
	check_received(1, round, &statuses[1]);
	check_received(0, round, &statuses[3]);
	memset(out, 0, sizeof(out));
	/* What is not started is complete. */
	CHECK(!MPI_Test(&sends[0], &flag, MPI_STATUS_IGNORE) && flag);
}

static void do_round(int round)
{
	int flag = 1;

	if (round % 4 == 0)
		CHECK(!MPI_Startall(BOTH, receives));
	CHECK(!MPI_Startall(BOTH, sends));
	ready_parts(0, round, 0, 2);
	CHECK(!MPI_Test(&sends[0], &flag, MPI_STATUS_IGNORE) && !flag);
	ready_parts(1, round, 0, 1);
	work_at_random();
	if (round % 4)
		CHECK(!MPI_Start(&receives[1]) && !MPI_Start(&receives[0]));
	work_at_random();
	ready_parts(0, round, 1, 2);
	finish_round(round);
}

static void sleep_until_awake(void)
{
	char asleep[32];

	snprintf(asleep, sizeof(asleep), "asleep.%d", rank);
	close(open(asleep, O_CREAT, 0600));
	while (access("awake", F_OK))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void sleep_in_round(int round)
{
	int flag = 1;

	CHECK(!MPI_Startall(BOTH, sends) && !MPI_Start(&receives[0]));
	ready_parts(0, round, 0, 2);
	ready_parts(1, round, 0, 1);
	sleep_until_awake();
	CHECK(!MPI_Test(&sends[0], &flag, MPI_STATUS_IGNORE) && !flag);
	CHECK(!MPI_Parrived(receives[0], 0, &flag) && !flag);
	CHECK(!MPI_Start(&receives[1]));
	ready_parts(0, round, 1, 2);
	finish_round(round);
}

/* What was counted on the communicator is counted on another one when it has been freed: of the same ranks, in another order. */
static void wait_for_sleeper(void)
{
	MPI_Request request = MPI_REQUEST_NULL;
	MPI_Comm comm, other;

	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
	if (rank == 0)
		MPI_Precv_init(in, 1, 1, MPI_INT, 0, TAG, comm, MPI_INFO_NULL, &request);
	if (rank == 2)
		MPI_Psend_init(out, 1, 1, MPI_INT, 2, TAG, comm, MPI_INFO_NULL, &request);
	MPI_Comm_free(&comm);
	MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &other);
	if (request != MPI_REQUEST_NULL)
		CHECK(!MPI_Start(&request));
	if (rank == 2) {
		sleep_until_awake();
		CHECK(!MPI_Pready(0, request));
	}
	if (request != MPI_REQUEST_NULL) {
		CHECK(!MPI_Wait(&request, MPI_STATUS_IGNORE));
		MPI_Request_free(&request);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Comm_free(&other);
}

int main(int argc, char **argv)
{
	MPI_Request nobody[2];
	int on = 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	own = rank + 1;
	to = (rank + 1) % size;
	from = (rank + size - 1) % size;
	make_requests();
	MPI_Psend_init(out, 1, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
		&nobody[0]);
	MPI_Precv_init(
		in, 1, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &nobody[1]);
	if (argc > 1 && !strcmp(argv[1], "waiting"))
		wait_for_sleeper();
	else if (argc > 1)
		sleep_in_round(0);
	for (int round = 1; on; round++) {
		the_round = round;
		do_round(round);
		CHECK(!MPI_Startall(2, nobody) && !MPI_Pready(0, nobody[0]));
		CHECK(!MPI_Waitall(2, nobody, MPI_STATUSES_IGNORE));
		if (round % 5 == 0) {
			free_requests();
			make_requests();
		}
		show_round(round);
		END_ROUND(MPI_COMM_WORLD, round, on);
	}
	free_requests();
	MPI_Request_free(&nobody[0]);
	MPI_Request_free(&nobody[1]);
	MPI_Finalize();
	printf("ok\n");
	return 0;
}
