/*
 * mpi_sessions.c - an MPI program of sessions: without MPI_Init, or with "world" besides it, and then MPI_Finalize comes before the last session is
 * finalized; with "ended" it comes before the rounds. Round after round its ranks send each other messages, make collective calls, and make and end a second session, on communicators that
 * are made of process sets. "ready" after the first round. Rounds are shown as in mpi_ranks.h; "ok" at the end, when the file "go" is there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <string.h>

#include "mpi_ranks.h"

static MPI_Session session = MPI_SESSION_NULL, second = MPI_SESSION_NULL;
static MPI_Comm all = MPI_COMM_NULL, alone, half;
static MPI_Group group;
static int told;
static char buffer[100000];

static void on_error(MPI_Session *of, int *code, ...)
{
	CHECK(*of == session && *code == MPI_ERR_OTHER);
	told++;
}

/* Calls that a library has since MPI 4.1 are looked for. */
static void attach_buffer(void)
{
	int (*attach)(MPI_Session, void *, int) = (int (*)(MPI_Session, void *, int))dlsym(
		RTLD_DEFAULT, "MPI_Session_attach_buffer");

	CHECK(attach && !attach(session, buffer, sizeof(buffer)));
}

static void detach_buffer(void)
{
	int (*detach)(MPI_Session, void *, int *) = (int (*)(MPI_Session, void *, int *))dlsym(
		RTLD_DEFAULT, "MPI_Session_detach_buffer");
	void *was = NULL;
	int its = 0;

	CHECK(detach && !detach(session, &was, &its) && was == buffer && its == sizeof(buffer));
}

static MPI_Comm comm_of(MPI_Session of, const char *set, const char *tag, int every)
{
	MPI_Group whole, part;
	int ranks[64], members = 0, n = 0;
	MPI_Comm made;

	CHECK(!MPI_Group_from_session_pset(of, set, &whole));
	MPI_Group_size(whole, &members);
	for (int i = rank % every; i < members; i += every)
		ranks[n++] = i;
	MPI_Group_incl(whole, n, ranks, &part);
	CHECK(!MPI_Comm_create_from_group(part, tag, MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
	MPI_Group_free(&part);
	MPI_Group_free(&whole);
	return made;
}

static void begin_second(void)
{
	CHECK(!MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &second));
	half = comm_of(second, "mpi://WORLD", rank % 2 ? "odd" : "even", 2);
}

static void end_second(void)
{
	MPI_Comm_free(&half);
	CHECK(!MPI_Session_finalize(&second) && second == MPI_SESSION_NULL);
}

static void begin_first(void)
{
	MPI_Errhandler handler;
	char name[MPI_MAX_PSET_NAME_LEN];
	int count = 0, length = sizeof(name), level = 0;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "thread_level", "MPI_THREAD_SERIALIZED");
	CHECK(!MPI_Session_init(info, MPI_ERRORS_RETURN, &session));
	/* MPICH 4.0.2 has no handlers before, and takes none from MPI_Session_init. */
	CHECK(!MPI_Session_create_errhandler(on_error, &handler));
	CHECK(!MPI_Session_set_errhandler(session, handler));
	MPI_Errhandler_free(&handler);
	MPI_Info_free(&info);
	/* The next session may ask for more than the hint of the first one. */
	CHECK(!MPI_Query_thread(&level) && level == MPI_THREAD_MULTIPLE);
	CHECK(!MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count) && count >= 2);
	CHECK(!MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name) && *name);
	CHECK(!MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
	MPI_Group_rank(group, &rank);
	MPI_Group_size(group, &size);
	all = comm_of(session, "mpi://WORLD", "all", 1);
	alone = comm_of(session, "mpi://SELF", "alone", 1);
}

static void check_session(void)
{
	int members = 0, before = told;
	MPI_Info used;

	CHECK(!MPI_Group_size(group, &members) && members == size);
	CHECK(!MPI_Session_get_info(session, &used) && !MPI_Info_free(&used));
	CHECK(!MPI_Session_call_errhandler(session, MPI_ERR_OTHER) && told == before + 1);
	CHECK(!MPI_Comm_size(alone, &members) && members == 1);
}

static void send_round(int round)
{
	int to = (rank + 1) % size, from = (rank + size - 1) % size, got = 0, sum = 0;

	MPI_Bsend(&round, 1, MPI_INT, to, 1, all);
	work_at_random();
	MPI_Recv(&got, 1, MPI_INT, from, 1, all, MPI_STATUS_IGNORE);
	CHECK(got == round);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, all);
	CHECK(sum == size * (size - 1) / 2);
	work_at_random();
	MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, half);
	CHECK(sum == round * ((size + 1 - rank % 2) / 2));
}

int main(int argc, char **argv)
{
	int on = 1, flag = -1, provided, world = argc > 1,
	    ended = world && !strcmp(argv[1], "ended");

	if (world)
		MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	begin_first();
	own = rank + 1;
	begin_second();
	attach_buffer();
	if (ended)
		CHECK(!MPI_Finalize());
	for (int round = 1; on; round++) {
		the_round = round;
		check_session();
		CHECK(!MPI_Initialized(&flag) && flag == world);
		CHECK(!MPI_Finalized(&flag) && flag == ended);
		send_round(round);
		if (round % 5 == 0) {
			end_second();
			work_at_random();
			begin_second();
		}
		show_round(round);
		END_ROUND(all, round, on);
	}
	detach_buffer();
	end_second();
	if (world && !ended)
		CHECK(!MPI_Finalize());
	if (world) {
		CHECK(!MPI_Finalized(&flag) && flag);
		MPI_Barrier(all);
	}
	MPI_Comm_free(&all);
	MPI_Comm_free(&alone);
	MPI_Group_free(&group);
	CHECK(!MPI_Session_finalize(&session) && session == MPI_SESSION_NULL);
	CHECK(!MPI_Finalized(&flag) && flag == world);
	/* And one more, when there was none. */
	if (!world) {
		begin_second();
		end_second();
	}
	printf("ok\n");
	return 0;
}
