/*
 * mpi_progress.c - an MPI program of two ranks, with the name of a case: calls that must return although the other rank is not in MPI, or in a call of
 * another kind. Where a rank waits outside of MPI it is for a file that the other one makes. "done" at the end of each rank.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <string.h>

#include "mpi_ranks.h"

enum { PARTS = 4, PART = 1 << 18, BYTES = PARTS * PART, TAG = 3, ROUNDS = 60 };

static char out[BYTES], in[BYTES], large[BYTES];
static MPI_Request sends, receives;
static int other; /* rank */

static void tell(const char *file)
{
	close(open(file, O_CREAT, 0600));
}

static void await_file(const char *file)
{
	while (access(file, F_OK))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void make_requests(void)
{
	CHECK(!MPI_Psend_init(
		out, PARTS, PART, MPI_CHAR, other, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &sends));
	CHECK(!MPI_Precv_init(in, PARTS, PART, MPI_CHAR, other, TAG, MPI_COMM_WORLD,
		MPI_INFO_NULL, &receives));
}

static void free_requests(void)
{
	MPI_Request_free(&sends);
	MPI_Request_free(&receives);
}

static int is_filled(const char *bytes, int value)
{
	return bytes[0] == value && !memcmp(bytes, bytes + 1, BYTES - 1);
}

/* ---- the send is waited for first ---- */

static void both_send_first(void)
{
	memset(out, 'a' + rank, BYTES);
	MPI_Start(&receives);
	MPI_Start(&sends);
	CHECK(!MPI_Pready_range(0, PARTS - 1, sends));
	CHECK(!MPI_Wait(&sends, MPI_STATUS_IGNORE));
	CHECK(!MPI_Wait(&receives, MPI_STATUS_IGNORE));
	CHECK(is_filled(in, 'a' + other));
}

static void send_and_meet(void)
{
	memset(out, 'a' + rank, BYTES);
	MPI_Start(rank ? &receives : &sends);
	if (rank == 0) {
		CHECK(!MPI_Pready_range(0, PARTS - 1, sends));
		CHECK(!MPI_Wait(&sends, MPI_STATUS_IGNORE));
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 1) {
		CHECK(!MPI_Wait(&receives, MPI_STATUS_IGNORE));
		CHECK(is_filled(in, 'a'));
	}
}

/* ---- the last partition is ready while another thread waits ---- */

static void *ready_last(void *unused)
{
	(void)unused;
	CHECK(!MPI_Pready_range(1, PARTS - 1, sends));
	return NULL;
}

/* The sender may go on with the next message, and the receiver is late. */
static void send_from_threads(void)
{
	const struct timespec nap = {.tv_nsec = 2000000};
	pthread_t thread;

	for (the_round = 0; the_round < ROUNDS; the_round++) {
		if (rank == 0) {
			memset(out, the_round, BYTES);
			MPI_Start(&sends);
			CHECK(!MPI_Pready(0, sends));
			pthread_create(&thread, NULL, ready_last, NULL);
			CHECK(!MPI_Wait(&sends, MPI_STATUS_IGNORE));
			pthread_join(thread, NULL);
		} else {
			nanosleep(&nap, NULL);
			MPI_Start(&receives);
			CHECK(!MPI_Wait(&receives, MPI_STATUS_IGNORE));
			CHECK(is_filled(in, the_round));
		}
	}
}

/* ---- a send whose partitions are not ready is waited for ---- */

static MPI_Request waited[2];
static int waits;

static void *await_requests(void *unused)
{
	(void)unused;
	if (waits == 1)
		CHECK(!MPI_Wait(&waited[0], MPI_STATUS_IGNORE));
	else
		CHECK(!MPI_Waitall(waits, waited, MPI_STATUSES_IGNORE));
	return NULL;
}

/* So the library must make progress, for the receive. The partitions are ready when the other rank has sent all. */
static void wait_for_partitions(int count, const char *file)
{
	MPI_Request receive;
	pthread_t thread;

	if (rank == 1) {
		memset(large, 'l', BYTES);
		CHECK(!MPI_Ssend(large, BYTES, MPI_CHAR, 0, TAG, MPI_COMM_WORLD));
		tell(file);
		CHECK(!MPI_Start(&receives) && !MPI_Wait(&receives, MPI_STATUS_IGNORE));
		return;
	}
	MPI_Irecv(large, BYTES, MPI_CHAR, 1, TAG, MPI_COMM_WORLD, &receive);
	MPI_Start(&sends);
	waited[0] = sends;
	waited[1] = receive;
	waits = count;
	pthread_create(&thread, NULL, await_requests, NULL);
	await_file(file);
	CHECK(!MPI_Pready_range(0, PARTS - 1, sends));
	pthread_join(thread, NULL);
	if (count == 1)
		CHECK(!MPI_Wait(&receive, MPI_STATUS_IGNORE));
	CHECK(is_filled(large, 'l'));
}

/* ---- what is in a buffer has been sent when the last session, or MPI with one left, has been finalized ---- */

static void session_comm(MPI_Session *session, MPI_Comm *comm)
{
	MPI_Group group;

	CHECK(!MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session));
	CHECK(!MPI_Group_from_session_pset(*session, "mpi://WORLD", &group));
	CHECK(!MPI_Comm_create_from_group(
		group, "all", MPI_INFO_NULL, MPI_ERRORS_RETURN, comm));
	MPI_Group_rank(group, &rank);
	MPI_Group_free(&group);
	other = 1 - rank;
}

static void end_with_buffer(int world)
{
	static char buffer[BYTES + 10000];
	MPI_Session session;
	MPI_Comm comm;

	if (world)
		MPI_Init(NULL, NULL);
	session_comm(&session, &comm);
	if (rank == 0) {
		MPI_Buffer_attach(buffer, sizeof(buffer));
		CHECK(!MPI_Bsend(out, BYTES, MPI_CHAR, 1, TAG, comm));
	}
	if (rank == 1) {
		CHECK(!MPI_Recv(in, BYTES, MPI_CHAR, 0, TAG, comm, MPI_STATUS_IGNORE));
		tell("received");
	} else if (world) {
		CHECK(!MPI_Finalize());
	} else {
		MPI_Comm_free(&comm);
		CHECK(!MPI_Session_finalize(&session));
	}
	await_file("received");
	if (rank == 1 && world)
		CHECK(!MPI_Finalize());
	if (rank == 1 || world) {
		MPI_Comm_free(&comm);
		CHECK(!MPI_Session_finalize(&session));
	}
}

/* ---- mistakes are told whose they are ---- */

static int told;

static void on_error(MPI_Comm *comm, int *code, ...)
{
	CHECK(*comm != MPI_COMM_WORLD && *code);
	told++;
}

static void on_session_error(MPI_Session *session, int *code, ...)
{
	CHECK(*session != MPI_SESSION_NULL && *code);
	told++;
}

/* Calls that a library has since MPI 4.1 are looked for. */
static void attach_too_small(MPI_Comm comm)
{
	int (*to_comm)(MPI_Comm, void *, int) =
		(int (*)(MPI_Comm, void *, int))dlsym(RTLD_DEFAULT, "MPI_Comm_attach_buffer");
	int (*to_session)(MPI_Session, void *, int) = (int (*)(MPI_Session, void *, int))dlsym(
		RTLD_DEFAULT, "MPI_Session_attach_buffer");
	MPI_Session session;
	MPI_Errhandler handler;

	told = 0;
	CHECK(to_comm(comm, out, -1) && told == 1);
	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
	MPI_Session_create_errhandler(on_session_error, &handler);
	MPI_Session_set_errhandler(session, handler);
	MPI_Errhandler_free(&handler);
	CHECK(to_session(session, out, -1) && told == 2);
	MPI_Session_finalize(&session);
}

static void make_mistakes(void)
{
	MPI_Datatype uncommitted;
	MPI_Errhandler handler;
	MPI_Comm comm;
	int *limit, flag;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_create_errhandler(on_error, &handler);
	MPI_Comm_set_errhandler(comm, handler);
	MPI_Errhandler_free(&handler);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &flag);
	MPI_Type_contiguous(2, MPI_INT, &uncommitted);
	CHECK(MPI_Psend_init(out, 1, 1, uncommitted, other, TAG, comm, MPI_INFO_NULL, &sends));
	CHECK(told == 1);
	CHECK(MPI_Precv_init(
		in, 1, 1, MPI_DATATYPE_NULL, other, TAG, comm, MPI_INFO_NULL, &receives));
	CHECK(told == 2);
	CHECK(MPI_Psend_init(
		out, 1, 1, MPI_INT, other, *limit + 1, comm, MPI_INFO_NULL, &sends));
	CHECK(told == 3);
	CHECK(!MPI_Psend_init(out, 1, 1, MPI_INT, other, *limit, comm, MPI_INFO_NULL, &sends));
	CHECK(MPI_Pready(0, sends) && told == 4);
	MPI_Request_free(&sends);
	MPI_Type_free(&uncommitted);
	attach_too_small(comm);
	MPI_Comm_free(&comm);
}

static void with_requests(const char *name)
{
	int provided;

	MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(size == 2 && provided == MPI_THREAD_MULTIPLE);
	other = 1 - rank;
	make_requests();
	if (!strcmp(name, "sends-first"))
		both_send_first();
	else if (!strcmp(name, "barrier"))
		send_and_meet();
	else if (!strcmp(name, "threads"))
		send_from_threads();
	else if (!strcmp(name, "wait"))
		wait_for_partitions(1, "sent-wait");
	else if (!strcmp(name, "waitall"))
		wait_for_partitions(2, "sent-waitall");
	free_requests();
	if (!strcmp(name, "mistakes"))
		make_mistakes();
	MPI_Finalize();
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (!strcmp(name, "session") || !strcmp(name, "world"))
		end_with_buffer(!strcmp(name, "world"));
	else
		with_requests(name);
	printf("done\n");
	return 0;
}
