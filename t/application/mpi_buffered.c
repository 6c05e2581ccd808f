/*
 * mpi_buffered.c - an MPI program whose ranks send each other buffered messages of all three kinds, small and large ones, round after round; each
 * round attaches a buffer, and detaches it while messages of it are still to be received. "ready" after the first round. Rounds are shown as in
 * mpi_ranks.h; "ok" at the end, when the file "go" is there.
 *
 * With "detaching" rank 0 waits in MPI_Buffer_detach at first, and the others ask for nothing until the file "awake" is there: each rank shows that
 * by a file "asleep.RANK".
 */
#include <fcntl.h>
#include <mpi.h>
#include <string.h>

#include "mpi_ranks.h"

enum { MESSAGES = 12, LARGEST = 90000, ROOM = MESSAGES * (2 * LARGEST + 200) };

static char room[ROOM], message[2 * LARGEST], got[LARGEST];
static MPI_Request started;
static char persistent[LARGEST];

static int size_of(int round, int i)
{
	return i % 3 ? 1 + (round * 7919 + i * 104729) % LARGEST : 1 + (round + i) % 64;
}

static char byte_of(int from, int round, int i, int at)
{
	return from * 31 + round * 7 + i * 13 + at;
}

/* Every other byte of `message`: so the library has to copy, too. */
static void send_bytes(int to, int round, int i, MPI_Request *request)
{
	int count = size_of(round, i);
	MPI_Datatype every_other;

	for (int at = 0; at < count; at++)
		message[2 * at] = byte_of(rank, round, i, at);
	MPI_Type_vector(count, 1, 2, MPI_CHAR, &every_other);
	MPI_Type_commit(&every_other);
	if (request)
		MPI_Ibsend(message, 1, every_other, to, 5, MPI_COMM_WORLD, request);
	else
		MPI_Bsend(message, 1, every_other, to, 5, MPI_COMM_WORLD);
	MPI_Type_free(&every_other);
	memset(message, 0, 2 * count); /* what is sent is a copy */
}

static void send_persistent(int round, int i)
{
	for (int at = 0; at < LARGEST; at++)
		persistent[at] = byte_of(rank, round, i, at);
	MPI_Start(&started);
	MPI_Wait(&started, MPI_STATUS_IGNORE);
	memset(persistent, 0, LARGEST);
}

/* None of these waits for its receive. */
static void send_all(int to, int round)
{
	for (int i = 0; i < MESSAGES; i++) {
		MPI_Request request;
		int flag = 0;

		if (i % 4 == 3) {
			send_persistent(round, i);
		} else if (i % 2) {
			send_bytes(to, round, i, &request);
			MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
			CHECK(flag && request == MPI_REQUEST_NULL);
		} else {
			send_bytes(to, round, i, NULL);
		}
	}
}

static void receive_all(int from, int round)
{
	for (int i = 0; i < MESSAGES; i++) {
		int count = i % 4 == 3 ? LARGEST : size_of(round, i), has = 0;
		MPI_Status status;

		MPI_Recv(got, LARGEST, MPI_CHAR, from, 5, MPI_COMM_WORLD, &status);
		MPI_Get_count(&status, MPI_CHAR, &has);
		CHECK(has == count);
		for (int at = 0; at < count; at++)
			CHECK(got[at] == byte_of(from, round, i, at));
	}
}

static void attach(void)
{
	CHECK(!MPI_Buffer_attach(room, ROOM));
}

static void detach(void)
{
	void *was = NULL;
	int its = 0;

	CHECK(!MPI_Buffer_detach(&was, &its) && was == room && its == ROOM);
}

/* One buffer at a time, and no more in it than it has room for. */
static void make_mistakes(void)
{
	int other = rank ^ 1, its = 0, r = 0, sent = 0;
	void *was = NULL;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	CHECK(!MPI_Bsend(got, 1, MPI_CHAR, MPI_PROC_NULL, 6, MPI_COMM_WORLD));
	CHECK(!MPI_Buffer_attach(room, 2 * LARGEST));
	CHECK(MPI_Buffer_attach(message, 1000) != MPI_SUCCESS);
	if (other < size) {
		while (!(r = MPI_Bsend(got, LARGEST, MPI_CHAR, other, 6, MPI_COMM_WORLD)))
			CHECK(++sent <= 2);
		CHECK(r != MPI_SUCCESS);
		MPI_Sendrecv(&sent, 1, MPI_INT, other, 7, &r, 1, MPI_INT, other, 7,
			MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		while (r--)
			MPI_Recv(got, LARGEST, MPI_CHAR, other, 6, MPI_COMM_WORLD,
				MPI_STATUS_IGNORE);
		/* There is room again. */
		MPI_Barrier(MPI_COMM_WORLD);
		CHECK(!MPI_Bsend(got, LARGEST, MPI_CHAR, other, 6, MPI_COMM_WORLD));
		MPI_Recv(got, LARGEST, MPI_CHAR, other, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else {
		MPI_Barrier(MPI_COMM_WORLD);
	}
	CHECK(!MPI_Buffer_detach(&was, &its) && was == room && its == 2 * LARGEST);
	CHECK(MPI_Buffer_detach(&was, &its) != MPI_SUCCESS || !its);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void detach_asleep(int to, int from)
{
	char asleep[32];

	snprintf(asleep, sizeof(asleep), "asleep.%d", rank);
	if (!rank) {
		attach();
		send_all(to, 0);
		close(open(asleep, O_CREAT, 0600));
		detach();
	} else {
		close(open(asleep, O_CREAT, 0600));
		while (access("awake", F_OK))
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	if (!from)
		receive_all(from, 0);
}

int main(int argc, char **argv)
{
	int on = 1, to, from;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	own = rank + 1;
	to = (rank + 1) % size;
	from = (rank + size - 1) % size;
	make_mistakes();
	MPI_Bsend_init(persistent, LARGEST, MPI_CHAR, to, 5, MPI_COMM_WORLD, &started);
	if (argc > 1)
		detach_asleep(to, from);
	for (int round = 1; on; round++) {
		the_round = round;
		attach();
		send_all(to, round);
		work_at_random();
		if (round % 2)
			receive_all(from, round);
		else if (rank % 2)
			detach(), receive_all(from, round);
		else
			receive_all(from, round), work_at_random();
		if (round % 2 || !(rank % 2))
			detach();
		show_round(round);
		on = access("go", F_OK);
		MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
		if (round == 1) {
			printf("ready\n");
			fflush(stdout);
		}
	}
	MPI_Request_free(&started);
	MPI_Finalize();
	printf("ok\n");
	return 0;
}
