/*
 * mpi_buffered.c - an MPI program whose ranks send each other buffered messages of all three kinds, small and large ones, round after round; each
 * round attaches a buffer, and detaches it while messages of it are still to be received. "ready" after the first round. Rounds are shown as in
 * mpi_ranks.h; "ok" at the end, when the file "go" is there.
 *
 * With "detaching" rank 0 waits in MPI_Buffer_detach at first, and the others ask for nothing until the file "awake" is there: each rank shows that
 * by a file "asleep.RANK".
 *
 * With "freed" rank 0 has sent on communicators that it has freed, and with "flushing" in a communicator's own buffer (MPI 4.1, so only where there
 * are functions for it) which is to be flushed; then all wait for "awake". With "finalizing" rank 0 sends and calls MPI_Finalize, and the others
 * receive when "awake" is there; there are no rounds.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <string.h>
#include <sys/mman.h>

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

static void show_asleep(void)
{
	char asleep[32];

	snprintf(asleep, sizeof(asleep), "asleep.%d", rank);
	close(open(asleep, O_CREAT, 0600));
}

static void sleep_until_awake(void)
{
	show_asleep();
	while (access("awake", F_OK))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void detach_asleep(int to, int from)
{
	if (!rank) {
		attach();
		send_all(to, 0);
		show_asleep();
		detach();
	} else {
		sleep_until_awake();
	}
	if (!from)
		receive_all(from, 0);
}

/* ---- what is sent is not kept ---- */

static long mapped_kib(void)
{
	char line[128];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "VmData: %ld", &kib);
	fclose(f);
	return kib;
}

/* The buffer has room for all, and none is asked for again before it has been received. */
static void send_many(void)
{
	enum { MANY = 300, ALL = 2 * MANY * 2 * LARGEST };
	void *room_for_all = mmap(NULL, ALL, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	long before = 0;
	void *was;
	int its;

	CHECK(room_for_all != MAP_FAILED);
	MPI_Buffer_attach(room_for_all, ALL);
	for (int i = 0; i < MANY && rank < 2; i++) {
		if (i == MANY / 10)
			before = mapped_kib();
		if (!rank)
			MPI_Bsend(message, 2 * LARGEST, MPI_CHAR, 1, 8, MPI_COMM_WORLD);
		else
			MPI_Recv(message, 2 * LARGEST, MPI_CHAR, 0, 8, MPI_COMM_WORLD,
				MPI_STATUS_IGNORE);
		MPI_Sendrecv(&i, 1, MPI_INT, !rank, 9, &its, 1, MPI_INT, !rank, 9,
			MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	CHECK(rank > 1 || mapped_kib() - before < MANY * (2 * LARGEST / 1024) / 2);
	MPI_Buffer_detach(&was, &its);
	munmap(room_for_all, ALL);
}

/* A few elements may be more bytes than an int counts: too many for the buffer, and no other mistake. */
static void send_huge(void)
{
	MPI_Datatype huge;
	int class = 0;

	MPI_Type_create_hvector(40000, LARGEST, 0, MPI_CHAR, &huge);
	MPI_Type_commit(&huge);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	attach();
	MPI_Error_class(MPI_Bsend(got, 1, huge, rank ^ 1, 6, MPI_COMM_WORLD), &class);
	CHECK(class == MPI_ERR_BUFFER);
	detach();
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Type_free(&huge);
}

/* ---- on communicators that are freed ---- */

static void send_and_free(void)
{
	MPI_Comm first, second;
	MPI_Request request;

	MPI_Comm_dup(MPI_COMM_WORLD, &first);
	MPI_Comm_dup(MPI_COMM_WORLD, &second);
	if (!rank) {
		memset(message, 1, sizeof(message));
		attach();
		MPI_Bsend(message, 2 * LARGEST, MPI_CHAR, 1, 1, first);
		MPI_Comm_free(&first);
		MPI_Bsend_init(message, 2 * LARGEST, MPI_CHAR, 1, 1, second, &request);
		MPI_Comm_free(&second);
		for (int i = 2; i < 4; i++) {
			memset(message, i, sizeof(message));
			CHECK(!MPI_Start(&request) && !MPI_Wait(&request, MPI_STATUS_IGNORE));
		}
		memset(message, 0, sizeof(message));
		MPI_Request_free(&request);
		/* The others have received all. */
		MPI_Barrier(MPI_COMM_WORLD);
		sleep_until_awake();
		detach();
		return;
	}
	for (int i = 1; i < 4 && rank == 1; i++) {
		MPI_Recv(message, 2 * LARGEST, MPI_CHAR, 0, 1, i < 2 ? first : second,
			MPI_STATUS_IGNORE);
		CHECK(message[0] == i && message[2 * LARGEST - 1] == i);
	}
	MPI_Comm_free(&first);
	MPI_Comm_free(&second);
	MPI_Barrier(MPI_COMM_WORLD);
	sleep_until_awake();
}

/* ---- a communicator's own buffer ---- */

typedef int attach_to(MPI_Comm, void *, int);
typedef int detach_from(MPI_Comm, void *, int *);
typedef int flush_of(MPI_Comm);
typedef int iflush_of(MPI_Comm, MPI_Request *);

static void *function(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	CHECK(found);
	return found;
}

static void flush_asleep(void)
{
	attach_to *attach_own = function("MPI_Comm_attach_buffer");
	detach_from *detach_own = function("MPI_Comm_detach_buffer");
	flush_of *flush = function("MPI_Comm_flush_buffer");
	iflush_of *iflush = function("MPI_Comm_iflush_buffer");
	MPI_Request empty, full;
	int flag = 0, its = 0, class = 0;
	void *was = NULL;
	MPI_Comm own_comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &own_comm);
	MPI_Comm_set_errhandler(own_comm, MPI_ERRORS_RETURN);
	CHECK(!attach_own(own_comm, room, 3 * LARGEST));
	MPI_Error_class(attach_own(own_comm, room, 3 * LARGEST), &class);
	CHECK(class == MPI_ERR_BUFFER);
	MPI_Comm_set_errhandler(own_comm, MPI_ERRORS_ARE_FATAL);
	/* That of the process is another one. */
	CHECK(!MPI_Buffer_attach(message, 1000));
	CHECK(!MPI_Buffer_detach(&was, &its) && was == message && its == 1000);
	if (!rank) {
		CHECK(!iflush(own_comm, &empty));
		memset(got, 7, LARGEST);
		CHECK(!MPI_Bsend(got, LARGEST, MPI_CHAR, 1, 6, own_comm));
		CHECK(!MPI_Bsend(got, LARGEST, MPI_CHAR, 1, 6, own_comm));
		memset(got, 0, LARGEST);
		CHECK(!iflush(own_comm, &full));
		CHECK(!MPI_Wait(&empty, MPI_STATUS_IGNORE) && empty == MPI_REQUEST_NULL);
		CHECK(!MPI_Test(&full, &flag, MPI_STATUS_IGNORE) && !flag);
		CHECK(!MPI_Testall(1, &full, &flag, MPI_STATUSES_IGNORE) && !flag);
	}
	sleep_until_awake();
	for (int i = 0; i < 2 && rank == 1; i++) {
		MPI_Recv(got, LARGEST, MPI_CHAR, 0, 6, own_comm, MPI_STATUS_IGNORE);
		CHECK(got[0] == 7 && got[LARGEST - 1] == 7);
	}
	if (!rank) {
		CHECK(!MPI_Wait(&full, MPI_STATUS_IGNORE) && full == MPI_REQUEST_NULL);
		/* There is room again. */
		CHECK(!MPI_Bsend(got, LARGEST, MPI_CHAR, 1, 6, own_comm));
		CHECK(!MPI_Bsend(got, LARGEST, MPI_CHAR, 1, 6, own_comm));
	}
	for (int i = 0; i < 2 && rank == 1; i++)
		MPI_Recv(got, LARGEST, MPI_CHAR, 0, 6, own_comm, MPI_STATUS_IGNORE);
	CHECK(!flush(own_comm));
	CHECK(!detach_own(own_comm, &was, &its) && was == room && its == 3 * LARGEST);
	MPI_Comm_free(&own_comm);
}

static int finalize_asleep(int to, int from)
{
	if (!rank) {
		attach();
		send_all(to, 0);
		show_asleep();
	} else {
		sleep_until_awake();
		if (!from)
			receive_all(from, 0);
	}
	MPI_Request_free(&started);
	MPI_Finalize();
	printf("ok\n");
	return 0;
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
	send_many();
	send_huge();
	MPI_Bsend_init(persistent, LARGEST, MPI_CHAR, to, 5, MPI_COMM_WORLD, &started);
	if (argc > 1 && !strcmp(argv[1], "finalizing"))
		return finalize_asleep(to, from);
	if (argc > 1 && !strcmp(argv[1], "freed"))
		send_and_free();
	else if (argc > 1 && !strcmp(argv[1], "flushing"))
		flush_asleep();
	else if (argc > 1)
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
		END_ROUND(MPI_COMM_WORLD, round, on);
	}
	MPI_Request_free(&started);
	MPI_Finalize();
	printf("ok\n");
	return 0;
}
