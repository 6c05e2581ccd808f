/*
 * mpi_held.c - an MPI program of one rank without a launcher whose messages to itself are in each state that a
 * checkpoint makes another one of: complete with an error or without one, withdrawn, cancelled, freed, persistent. It
 * makes them, prints "ready", waits for SIGUSR1, looks at what each has become, and prints "ok".
 *
 * With the name of a part it has that only.
 */
#include "mpi_before_4.inc"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi_one_rank.h"

enum { LONG = 4, UNTOUCHED = 12345 };

static int class_of(int error)
{
	int class = -1;

	MPI_Error_class(error, &class);
	return class;
}

static MPI_Comm new_comm(void)
{
	MPI_Comm comm;

	CHECK(!MPI_Comm_dup(MPI_COMM_SELF, &comm));
	CHECK(!MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
	return comm;
}

/* ---- several requests of which one has failed ---- */

enum { PAIRS = 6 };

static struct pair {
	MPI_Comm comm;
	MPI_Request requests[2], sent;
	int out[LONG], in[2];
} pairs[PAIRS];

static int told;

static void tell_error(MPI_Comm *comm, int *code, ...)
{
	told += *comm == MPI_COMM_WORLD && class_of(*code) == MPI_ERR_IN_STATUS;
}

/* The first is complete, with an error in each other pair; what the second one waits for is not sent yet. */
static void make_pairs(void)
{
	MPI_Errhandler handler;

	/* MPICH has that of MPI_COMM_WORLD called, whatever the communicator. */
	MPI_Comm_create_errhandler(tell_error, &handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	MPI_Errhandler_free(&handler);
	for (int i = 0; i < PAIRS; i++) {
		struct pair *p = &pairs[i];

		p->comm = new_comm();
		p->out[0] = i;
		MPI_Irecv(&p->in[0], 1, MPI_INT, 0, 1, p->comm, &p->requests[0]);
		MPI_Irecv(&p->in[1], 1, MPI_INT, 0, 2, p->comm, &p->requests[1]);
		MPI_Isend(p->out, i % 2 ? 1 : LONG, MPI_INT, 0, 1, p->comm, &p->sent);
	}
}

static void complete_pair(struct pair *p, int how, MPI_Status *s, int wanted)
{
	int flag = 0, r = MPI_SUCCESS;

	if (!how)
		r = MPI_Waitall(2, p->requests, s);
	while (how && !flag && !r)
		r = MPI_Testall(2, p->requests, &flag, s);
	CHECK(class_of(r) == wanted);
}

/* One at a time, the one that is complete first. */
static void complete_some(struct pair *p, MPI_Status *s, int wanted)
{
	int count = 0, index[2] = {-1, -1}, out = 5;

	CHECK(class_of(MPI_Waitsome(2, p->requests, &count, index, s)) == wanted);
	CHECK(count == 1 && index[0] == 0 && p->requests[0] == MPI_REQUEST_NULL);
	MPI_Send(&out, 1, MPI_INT, 0, 2, p->comm);
	CHECK(!MPI_Waitsome(2, p->requests, &count, index, s + 1));
	CHECK(count == 1 && index[0] == 1);
}

static void check_pair(int i)
{
	struct pair *p = &pairs[i];
	MPI_Status s[2] = {{.MPI_ERROR = UNTOUCHED}, {.MPI_ERROR = UNTOUCHED}};
	int out = 5, fails = i % 2 == 0, wanted = fails ? MPI_ERR_IN_STATUS : MPI_SUCCESS;

	if (i < 4) {
		MPI_Send(&out, 1, MPI_INT, 0, 2, p->comm);
		complete_pair(p, i / 2, s, wanted);
		/* It need not have been looked at. */
		if (fails && s[1].MPI_ERROR == MPI_ERR_PENDING)
			s[1].MPI_ERROR = MPI_Wait(&p->requests[1], &s[1]);
		CHECK(!fails || s[1].MPI_ERROR == MPI_SUCCESS);
	} else {
		complete_some(p, s, wanted);
	}
	CHECK(!fails || class_of(s[0].MPI_ERROR) == MPI_ERR_TRUNCATE);
	CHECK(s[0].MPI_TAG == 1 && s[1].MPI_TAG == 2 && s[1].MPI_SOURCE == 0);
	CHECK(p->in[1] == 5 && (fails || p->in[0] == i));
	CHECK(p->requests[0] == MPI_REQUEST_NULL && p->requests[1] == MPI_REQUEST_NULL);
	MPI_Wait(&p->sent, MPI_STATUS_IGNORE);
}

static void check_pairs(void)
{
	for (int i = 0; i < PAIRS; i++)
		check_pair(i);
	CHECK(told == PAIRS / 2);
}

/* ---- receives of nothing are not counted: the message behind them is due ---- */

static MPI_Comm withdrawn, cancelled;
static MPI_Request cancelled_receive, cancelled_send, unasked[3];
static int cancelled_in, letters[3] = {71, 72, 73};

/* Nothing is sent by it. */
static void cancel_send(MPI_Comm comm)
{
	MPI_Request r;
	int flag = 1;

	MPI_Issend(NULL, 0, MPI_INT, 0, 1, comm, &r);
	MPI_Cancel(&r);
	MPI_Request_free(&r);
	MPI_Iprobe(0, 1, comm, &flag, MPI_STATUS_IGNORE);
	CHECK(!flag);
}

static void make_uncounted(void)
{
	int in, out = 1;
	MPI_Request r;
	MPI_Status s;
	int flag;

	withdrawn = new_comm();
	/* Rank 9 is none. */
	CHECK(class_of(MPI_Sendrecv(&out, 1, MPI_INT, 9, 1, &in, 1, MPI_INT, 0, 1, withdrawn,
		      MPI_STATUS_IGNORE)) == MPI_ERR_RANK);
	MPI_Isend(&letters[0], 1, MPI_INT, 0, 1, withdrawn, &unasked[0]);
	MPI_Isend(&letters[2], 1, MPI_INT, 0, 1, withdrawn, &unasked[2]);

	cancelled = new_comm();
	MPI_Irecv(&in, 1, MPI_INT, 0, 1, cancelled, &r);
	MPI_Cancel(&r);
	MPI_Wait(&r, &s);
	CHECK(!MPI_Test_cancelled(&s, &flag) && flag);
	MPI_Irecv(&cancelled_in, 1, MPI_INT, 0, 1, cancelled, &cancelled_receive);
	MPI_Cancel(&cancelled_receive);
	cancel_send(cancelled);
	/* What becomes of it is not seen before the checkpoint. */
	MPI_Issend(NULL, 0, MPI_INT, 0, 3, cancelled, &cancelled_send);
	MPI_Cancel(&cancelled_send);
	MPI_Isend(&letters[1], 1, MPI_INT, 0, 1, cancelled, &unasked[1]);
}

static void check_uncounted(void)
{
	int in = 0, out = 1, flag = 0;
	MPI_Request r;
	MPI_Status s;

	CHECK(!MPI_Iprobe(0, 1, withdrawn, &flag, &s) && flag);
	/* What was received for the checkpoint is there still. */
	CHECK(class_of(MPI_Sendrecv(&out, 1, MPI_INT, 9, 1, &in, 1, MPI_INT, 0, 1, withdrawn,
		      &s)) == MPI_ERR_RANK);
#if MPI_VERSION >= 4
	CHECK(class_of(MPI_Isendrecv(&out, 1, MPI_INT, 9, 1, &in, 1, MPI_INT, 0, 1, withdrawn,
		      &r)) == MPI_ERR_RANK);
#endif
	CHECK(!MPI_Recv(&in, 1, MPI_INT, 0, 1, withdrawn, &s) && in == letters[0]);
	CHECK(!MPI_Recv(&in, 1, MPI_INT, 0, 1, withdrawn, &s) && in == letters[2]);
	CHECK(!MPI_Wait(&cancelled_receive, &s));
	CHECK(!MPI_Test_cancelled(&s, &flag) && flag);
	CHECK(!MPI_Wait(&cancelled_send, &s));
	CHECK(!MPI_Test_cancelled(&s, &flag) && flag);
	CHECK(!MPI_Recv(&in, 1, MPI_INT, 0, 1, cancelled, &s) && in == letters[1]);
	MPI_Waitall(3, unasked, MPI_STATUSES_IGNORE);
}

/* ---- freed ---- */

enum { FREED = 40 };
static MPI_Comm freed_comm;
static int freed_in[FREED], freed_out[FREED];
static MPI_Request freed_sends[FREED];

/* MPICH 4.0.2 itself forgets receives from oneself that are freed: the stub keeps them. */
static void make_freed(void)
{
	MPI_Request r;

	freed_comm = new_comm();
	for (int i = 0; i < FREED; i++) {
		freed_out[i] = 100 + i;
		MPI_Irecv(&freed_in[i], 1, MPI_INT, 0, i, freed_comm, &r);
		MPI_Request_free(&r);
		CHECK(r == MPI_REQUEST_NULL);
		if (i % 2)
			MPI_Isend(&freed_out[i], 1, MPI_INT, 0, i, freed_comm, &freed_sends[i]);
	}
}

static void check_freed(void)
{
	int in = 0;
	MPI_Status s;

	for (int i = 0; i < FREED; i += 2)
		MPI_Isend(&freed_out[i], 1, MPI_INT, 0, i, freed_comm, &freed_sends[i]);
	MPI_Waitall(FREED, freed_sends, MPI_STATUSES_IGNORE);
	/* Nobody is told when one of them has come: but what is sent later comes later. */
	MPI_Sendrecv(
		&freed_out[0], 1, MPI_INT, 0, FREED, &in, 1, MPI_INT, 0, FREED, freed_comm, &s);
	for (int i = 0; i < FREED; i++)
		CHECK(freed_in[i] == freed_out[i]);
	/* Requests are used again, each by one only. */
	for (int i = 0; i < FREED; i++) {
		freed_in[i] = 0;
		MPI_Irecv(&freed_in[i], 1, MPI_INT, 0, i, freed_comm, &freed_sends[i]);
		for (int k = 0; k < i; k++)
			CHECK(freed_sends[k] != freed_sends[i]);
	}
	for (int i = 0; i < FREED; i++)
		MPI_Send(&freed_out[i], 1, MPI_INT, 0, i, freed_comm);
	MPI_Waitall(FREED, freed_sends, MPI_STATUSES_IGNORE);
	for (int i = 0; i < FREED; i++)
		CHECK(freed_in[i] == freed_out[i]);
}

/* ---- freed, with an error that nobody is told ---- */

static MPI_Comm untold;
static int untold_in[2], untold_out[LONG], errors;

static void count_error(MPI_Comm *comm, int *code, ...)
{
	errors++;
}

static void receive_too_little(MPI_Comm comm, int *in, int tag)
{
	MPI_Request r;

	MPI_Irecv(in, 1, MPI_INT, 0, tag, comm, &r);
	MPI_Request_free(&r);
	MPI_Send(untold_out, LONG, MPI_INT, 0, tag, comm);
}

/* Another one is freed: what was before is looked at. */
static void look_at_freed(void)
{
	int in = 0, flag = 0;
	MPI_Request r;

	for (int i = 0; i < 3; i++) {
		MPI_Iprobe(
			MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
		MPI_Irecv(&in, 1, MPI_INT, 0, 9, untold, &r);
		MPI_Request_free(&r);
		MPI_Send(untold_out, 1, MPI_INT, 0, 9, untold);
	}
}

static void make_untold(void)
{
	MPI_Errhandler handler, was;

	MPI_Comm_get_errhandler(MPI_COMM_WORLD, &was);
	MPI_Comm_create_errhandler(count_error, &handler);
	untold = new_comm();
	MPI_Comm_set_errhandler(untold, handler);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
	receive_too_little(untold, &untold_in[0], 1);
	look_at_freed();
	receive_too_little(untold, &untold_in[1], 2);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, was);
	MPI_Errhandler_free(&handler);
	MPI_Errhandler_free(&was);
	CHECK(!errors);
}

/* The handlers are there still. */
static void check_untold(void)
{
	look_at_freed();
	CHECK(!errors);
	CHECK(MPI_Send(untold_out, 1, MPI_INT, 9, 1, untold) && errors == 1);
}

/* ---- persistent ---- */

enum { COMPLETE, BEGUN, IDLE, STATES };
static MPI_Comm lasting;
static MPI_Request receives[STATES], sends[STATES];
static int lasting_in[STATES], lasting_out[STATES];

static void make_persistent(void)
{
	lasting = new_comm();
	for (int i = 0; i < STATES; i++) {
		MPI_Recv_init(&lasting_in[i], 1, MPI_INT, 0, i, lasting, &receives[i]);
		MPI_Send_init(&lasting_out[i], 1, MPI_INT, 0, i, lasting, &sends[i]);
		lasting_out[i] = 10 + i;
		if (i != IDLE)
			MPI_Start(&receives[i]);
	}
	MPI_Start(&sends[COMPLETE]);
}

static void check_persistent(void)
{
	MPI_Start(&sends[BEGUN]);
	MPI_Start(&receives[IDLE]);
	MPI_Start(&sends[IDLE]);
	for (int round = 0; round < 3; round++) {
		MPI_Waitall(STATES, receives, MPI_STATUSES_IGNORE);
		MPI_Waitall(STATES, sends, MPI_STATUSES_IGNORE);
		for (int i = 0; i < STATES; i++) {
			CHECK(lasting_in[i] == lasting_out[i]);
			CHECK(receives[i] != MPI_REQUEST_NULL && sends[i] != MPI_REQUEST_NULL);
			lasting_out[i] += 10;
		}
		MPI_Startall(STATES, sends);
		MPI_Startall(STATES, receives);
	}
	MPI_Waitall(STATES, receives, MPI_STATUSES_IGNORE);
	MPI_Waitall(STATES, sends, MPI_STATUSES_IGNORE);
}

/* ---- refused: on a communicator that has been freed, while another one has its handle ---- */

static MPI_Comm next_comm;
static MPI_Request left_request;
static int left_in, left_out = 9;

static MPI_Comm free_comm_with(MPI_Request *r, int persistent)
{
	MPI_Comm comm = new_comm(), was = comm;

	if (persistent)
		MPI_Send_init(&left_out, 1, MPI_INT, 0, 1, comm, r);
	else
		MPI_Irecv(&left_in, 1, MPI_INT, 0, 1, comm, r);
	MPI_Comm_free(&comm);
	return was;
}

static void leave(int persistent)
{
	MPI_Comm was = free_comm_with(&left_request, persistent);

	next_comm = new_comm();
	/* Else nothing would be tried. */
	if (getenv("TRECR_STUBS"))
		CHECK(next_comm == was);
}

static void make_left_persistent(void)
{
	leave(1);
}

static void make_left_receive(void)
{
	leave(0);
}

/* The library knows its communicator still. */
static void check_left_persistent(void)
{
	CHECK(!MPI_Request_free(&left_request));
}

static void check_left_receive(void)
{
	MPI_Status s;
	int flag = 0;

	MPI_Cancel(&left_request);
	CHECK(!MPI_Wait(&left_request, &s) && !MPI_Test_cancelled(&s, &flag) && flag);
}

#if MPI_VERSION >= 4
/* ---- a receive that is complete, with a send that is not before its message is asked for ---- */

enum { MUCH = 1 << 20 };
static MPI_Comm exchanged;
static MPI_Request both, answer;
static int much_out[MUCH], much_in[MUCH], answer_in, answer_out = 8;

static void make_exchanged(void)
{
	MPI_Request request;
	int flag = 1, index;

	exchanged = new_comm();
	for (int i = 0; i < MUCH; i++)
		much_out[i] = 3 * i;
	MPI_Isendrecv(
		much_out, MUCH, MPI_INT, 0, 1, &answer_in, 1, MPI_INT, 0, 2, exchanged, &both);
	MPI_Isend(&answer_out, 1, MPI_INT, 0, 2, exchanged, &answer);
	MPI_Wait(&answer, MPI_STATUS_IGNORE);
	CHECK(!MPI_Test(&both, &flag, MPI_STATUS_IGNORE));
	/* MPICH 4.0.2 itself sends what is for oneself at once. */
	CHECK(!flag || !getenv("TRECR_STUBS"));
	request = both;
	for (int i = 0; i < 3 && !flag; i++) {
		CHECK(!MPI_Testany(1, &request, &index, &flag, MPI_STATUS_IGNORE) && !flag);
		CHECK(!MPI_Testsome(1, &request, &flag, &index, MPI_STATUSES_IGNORE) && !flag);
		CHECK(!MPI_Testall(1, &request, &flag, MPI_STATUSES_IGNORE) && !flag);
		CHECK(!MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE) && !flag);
	}
}

static void check_exchanged(void)
{
	MPI_Status s;

	CHECK(!MPI_Recv(much_in, MUCH, MPI_INT, 0, 1, exchanged, &s));
	CHECK(!memcmp(much_in, much_out, sizeof(much_in)));
	CHECK(!MPI_Wait(&both, &s) && both == MPI_REQUEST_NULL);
	CHECK(answer_in == 8 && (!getenv("TRECR_STUBS") || (s.MPI_TAG == 2 && !s.MPI_SOURCE)));
}
#endif

/* ---- a persistent collective call ---- */

static MPI_Request sum;
static int sum_in, sum_out;

static void make_collective(void)
{
	sum_in = 3;
	MPI_Allreduce_init(
		&sum_in, &sum_out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &sum);
	MPI_Start(&sum);
}

static void check_collective(void)
{
	for (int i = 4; i < 8; i++) {
		CHECK(!MPI_Wait(&sum, MPI_STATUS_IGNORE));
		CHECK(sum != MPI_REQUEST_NULL && sum_out == sum_in);
		sum_in = i;
		CHECK(!MPI_Start(&sum));
	}
	CHECK(!MPI_Wait(&sum, MPI_STATUS_IGNORE) && sum_out == 7);
	CHECK(!MPI_Request_free(&sum));
}

/* ---- */

static const struct part {
	const char *name;
	void (*make)(void), (*check)(void);
	int refused;
} parts[] = {
	{"pairs", make_pairs, check_pairs, 0},
	{"uncounted", make_uncounted, check_uncounted, 0},
	{"freed", make_freed, check_freed, 0},
	{"untold", make_untold, check_untold, 0},
	{"persistent", make_persistent, check_persistent, 0},
#if MPI_VERSION >= 4
	{"exchanged", make_exchanged, check_exchanged, 0},
#endif
	{"collective", make_collective, check_collective, 0},
	{"left-persistent", make_left_persistent, check_left_persistent, 1},
	{"left-receive", make_left_receive, check_left_receive, 1},
};

static int is_on(const struct part *p, int argc, char **argv)
{
	return argc > 1 ? !strcmp(p->name, argv[1]) : !p->refused;
}

static void say(const char *what)
{
	printf("%s\n", what);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	sigset_t signals;
	int signal;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	MPI_Init(&argc, &argv);
	for (unsigned i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (is_on(&parts[i], argc, argv))
			parts[i].make();
	say("ready");
	sigwait(&signals, &signal);
	for (unsigned i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (is_on(&parts[i], argc, argv))
			parts[i].check();
	MPI_Finalize();
	say("ok");
	return 0;
}
