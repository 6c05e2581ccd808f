/*
 * mpi_messages.c - an MPI program of several ranks in which messages of all kinds are under way at any time: sent and
 * not asked for yet, asked for and not sent yet, matched by a probe, begun and not complete. Each message tells from
 * whom, to whom and which it is; each rank checks contents, order, sizes, sources and tags of what it gets.
 *
 * The first round behind a checkpoint or restart is shown by a symbolic link "round.RANK" that is made anew.
 * "ready" after the first round, and "ok" at the end, when the file "go" is there. With "ssend" rank 1 does not ask for
 * what rank 0 sends by MPI_Ssend before it finds the file "asked".
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mpi_ranks.h"

enum { MAIL = 3, SMALL = 16, LARGE = 50000 };
enum {
	T_MAIL = 10,
	T_LARGE = 20,
	T_RING,
	T_PROBED,
	T_KEPT,
	T_SSEND,
	T_REPLACED,
	T_WORK,
	T_ODD, /* in place of T_WORK in odd rounds */
	T_SELF,
	T_SHORT,
	T_LATE,
	T_FREED
};

static int left, right;
static MPI_Comm other, quiet, mail[2], between;
static MPI_Datatype every_second;
static int errors_told;

/* ---- contents ---- */

static int word(int from, int to, int what, int round, int i)
{
	return ((from * 64 + to) * 64 + what) * 1000 + round % 1000 + i * 7;
}

static void fill(int *data, int n, int to, int what, int round)
{
	for (int i = 0; i < n; i++)
		data[i] = word(rank, to, what, round, i);
}

static int is_from(const int *data, int n, int from, int what, int round)
{
	for (int i = 0; i < n; i++)
		if (data[i] != word(from, rank, what, round, i))
			return 0;
	return 1;
}

static int has(const MPI_Status *s, int source, int tag, int count)
{
	int n = -1;

	MPI_Get_count(s, MPI_INT, &n);
	return s->MPI_SOURCE == source && s->MPI_TAG == tag && n == count;
}

/* ---- what is under way from one round to the next ---- */

/* To each rank some that nobody asks for before the next round. */
static void send_mail(int round)
{
	int data[SMALL];

	for (int to = 0; to < size; to++)
		for (int i = 0; i < MAIL; i++) {
			fill(data, SMALL - i, to, i, round);
			MPI_Send(data, SMALL - i, MPI_INT, to, T_MAIL + i, mail[round % 2]);
		}
}

static void take_any(int round, int tag, int *seen)
{
	int data[SMALL] = {0}, what;
	MPI_Status s;

	MPI_Recv(data, SMALL, MPI_INT, MPI_ANY_SOURCE, tag, mail[round % 2], &s);
	what = s.MPI_TAG - T_MAIL;
	CHECK(what >= 0 && what < MAIL && has(&s, s.MPI_SOURCE, s.MPI_TAG, SMALL - what));
	CHECK(is_from(data, SMALL - what, s.MPI_SOURCE, what, round));
	seen[s.MPI_SOURCE * MAIL + what]++;
	/* Of one rank they come in the order in which they were sent. */
	for (int i = 0; tag == MPI_ANY_TAG && i < what; i++)
		CHECK(seen[s.MPI_SOURCE * MAIL + i]);
}

static void take_mail(int round)
{
	int seen[64 * MAIL] = {0}, flag;
	MPI_Status s;

	switch (chance(&common, 3)) {
	case 0: /* in another order than they were sent in */
		for (int i = MAIL; i--;)
			for (int k = 0; k < size; k++)
				take_any(round, T_MAIL + i, seen);
		break;
	case 1:
		for (int i = 0; i < size * MAIL; i++)
			take_any(round, MPI_ANY_TAG, seen);
		break;
	case 2:
		for (int i = 0; i < size * MAIL; i++) {
			MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, mail[round % 2], &s);
			CHECK(has(&s, s.MPI_SOURCE, s.MPI_TAG, SMALL - (s.MPI_TAG - T_MAIL)));
			take_any(round, s.MPI_TAG, seen);
		}
		break;
	}
	for (int i = 0; i < size * MAIL; i++)
		CHECK(seen[i] == 1);
	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, mail[round % 2], &flag, MPI_STATUS_IGNORE);
	CHECK(!flag);
}

static struct {
	MPI_Request ring[2], late, sums[2], token[2], freed;
	int in[LARGE], out[LARGE], late_in[SMALL], part[2], total[2];
	int token_in, token_out, freed_in;
	int unasked[LARGE];
	MPI_Request unasked_sent;
	MPI_Message kept;
	MPI_Status kept_status;
	MPI_Comm copy;
	MPI_Request copied, across;
	int across_out;
} under;

/* ---- between the ranks of even numbers and the others ---- */

static void send_across(int round)
{
	int there;

	MPI_Comm_remote_size(between, &there);
	under.across_out = word(rank, rank, T_WORK, round, 0);
	/* The next round's may come before another rank's of this one. */
	MPI_Isend(&under.across_out, 1, MPI_INT, rank / 2 % there, round % 2 ? T_ODD : T_WORK,
		between, &under.across);
}

/* Where there are fewer on this side, one gets two, or the other way round none. */
static void take_across(int round)
{
	int here, there, value;
	MPI_Status s;

	MPI_Comm_size(between, &here);
	MPI_Comm_remote_size(between, &there);
	for (int i = rank / 2; i < there; i += here) {
		int from;

		MPI_Recv(&value, 1, MPI_INT, round % 2 ? i : MPI_ANY_SOURCE,
			round % 2 ? T_ODD : T_WORK, between, &s);
		CHECK(s.MPI_SOURCE % here == rank / 2);
		from = 2 * s.MPI_SOURCE + !(rank % 2);
		CHECK(value == word(from, from, T_WORK, round, 0));
	}
	MPI_Wait(&under.across, MPI_STATUS_IGNORE);
}

static void begin(int round)
{
	fill(under.out, LARGE / 2, right, T_RING, round);
	memset(under.in, 0, sizeof(under.in));
	MPI_Irecv(under.in, 1, every_second, left, T_RING, MPI_COMM_WORLD, &under.ring[0]);
	MPI_Irecv(under.late_in, SMALL, MPI_INT, MPI_ANY_SOURCE, T_LATE, quiet, &under.late);
	MPI_Isend(under.out, LARGE / 2, MPI_INT, right, T_RING, MPI_COMM_WORLD, &under.ring[1]);
	fill(under.unasked, LARGE, left, T_LARGE, round);
	MPI_Isend(under.unasked, LARGE, MPI_INT, left, T_LARGE, MPI_COMM_WORLD,
		&under.unasked_sent);
	under.part[0] = rank + round;
	MPI_Iallreduce(
		&under.part[0], &under.total[0], 1, MPI_INT, MPI_SUM, other, &under.sums[0]);
	MPI_Ibarrier(MPI_COMM_WORLD, &under.sums[1]);
	MPI_Comm_idup(round % 2 ? other : MPI_COMM_WORLD, &under.copy, &under.copied);
	send_across(round);
	send_mail(round);
	fill(&under.part[1], 1, right, T_PROBED, round);
	MPI_Send(&under.part[1], 1, MPI_INT, right, T_KEPT, other);
	MPI_Mprobe(left, T_KEPT, other, &under.kept, &under.kept_status);
}

static void complete_ring(int round)
{
	MPI_Status s[2];
	int index, flag = 0;

	switch (chance(&common, 4)) {
	case 0:
		MPI_Waitall(2, under.ring, s);
		break;
	case 1:
		while (!flag)
			MPI_Testall(2, under.ring, &flag, s);
		break;
	case 2:
		for (int i = 0; i < 2; i++) {
			MPI_Waitany(2, under.ring, &index, &s[1]);
			CHECK(index == 0 || index == 1);
			s[0] = index ? s[0] : s[1];
		}
		break;
	case 3:
		MPI_Wait(&under.ring[1], MPI_STATUS_IGNORE);
		while (!flag)
			MPI_Request_get_status(under.ring[0], &flag, &s[0]);
		CHECK(has(&s[0], left, T_RING, LARGE / 2));
		MPI_Test(&under.ring[0], &flag, &s[0]);
		CHECK(flag);
		break;
	}
	CHECK(has(&s[0], left, T_RING, LARGE / 2));
	CHECK(under.ring[0] == MPI_REQUEST_NULL && under.ring[1] == MPI_REQUEST_NULL);
	for (int i = 0; i < LARGE / 2; i++)
		CHECK(under.in[2 * i] == word(left, rank, T_RING, round, i) &&
			!under.in[2 * i + 1]);
}

/* A communicator that was begun to be made in the last round; what is sent on it nobody has asked for. */
static void use_copy(int round)
{
	int out = word(rank, right, T_SELF, round, 0), in = 0, sum = 0;
	MPI_Request r;

	MPI_Wait(&under.copied, MPI_STATUS_IGNORE);
	MPI_Isend(&out, 1, MPI_INT, right, T_SELF, under.copy, &r);
	work_at_random();
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, under.copy);
	CHECK(sum == size * (size - 1) / 2);
	MPI_Recv(&in, 1, MPI_INT, left, T_SELF, under.copy, MPI_STATUS_IGNORE);
	CHECK(in == word(left, rank, T_SELF, round, 0));
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Comm_free(&under.copy);
}

static void complete(int round)
{
	int data[SMALL], flag = 0;
	MPI_Status s;

	complete_ring(round);
	use_copy(round);
	take_across(round);
	MPI_Probe(right, T_LARGE, MPI_COMM_WORLD, &s);
	CHECK(has(&s, right, T_LARGE, LARGE));
	MPI_Recv(under.in, LARGE, MPI_INT, right, T_LARGE, MPI_COMM_WORLD, &s);
	CHECK(has(&s, right, T_LARGE, LARGE) &&
		is_from(under.in, LARGE, right, T_LARGE, round));
	MPI_Wait(&under.unasked_sent, MPI_STATUS_IGNORE);
	CHECK(has(&under.kept_status, left, T_KEPT, 1));
	MPI_Mrecv(data, SMALL, MPI_INT, &under.kept, &s);
	CHECK(under.kept == MPI_MESSAGE_NULL && has(&s, left, T_KEPT, 1));
	CHECK(is_from(data, 1, left, T_PROBED, round));
	fill(data, SMALL, right, T_LATE, round);
	MPI_Send(data, SMALL, MPI_INT, right, T_LATE, quiet);
	while (!flag)
		MPI_Test(&under.late, &flag, &s);
	CHECK(has(&s, left, T_LATE, SMALL) &&
		is_from(under.late_in, SMALL, left, T_LATE, round));
	MPI_Waitall(2, under.sums, MPI_STATUSES_IGNORE);
	CHECK(under.total[0] == size * (size - 1) / 2 + size * round);
	take_mail(round);
}

/* ---- within a round ---- */

static void persistent(int round)
{
	MPI_Status s[2];
	int count, indices[2], done = 0;

	under.token_out = word(rank, right, T_RING, round, 0);
	MPI_Startall(2, under.token);
	work_at_random();
	while (done < 2) {
		MPI_Waitsome(2, under.token, &count, indices, s);
		CHECK(count > 0);
		for (int i = 0; i < count; i++)
			CHECK(indices[i] || has(&s[i], left, T_RING, 1));
		done += count;
	}
	CHECK(under.token_in == word(left, rank, T_RING, round, 0));
	MPI_Waitsome(2, under.token, &count, indices, s);
	CHECK(count == MPI_UNDEFINED);
}

static void synchronous(int round)
{
	int in[SMALL], out[SMALL];
	MPI_Request r;

	fill(out, SMALL, right, T_SSEND, round);
	MPI_Irecv(in, SMALL, MPI_INT, left, T_SSEND, MPI_COMM_WORLD, &r);
	MPI_Ssend(out, SMALL, MPI_INT, right, T_SSEND, MPI_COMM_WORLD);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	CHECK(is_from(in, SMALL, left, T_SSEND, round));
}

static void exchanged(int round)
{
	static int data[LARGE], got[LARGE];
	MPI_Status s;

	fill(data, LARGE, right, T_REPLACED, round);
	MPI_Sendrecv(data, LARGE, MPI_INT, right, T_REPLACED, got, LARGE, MPI_INT, left,
		T_REPLACED, MPI_COMM_WORLD, &s);
	CHECK(has(&s, left, T_REPLACED, LARGE) && is_from(got, LARGE, left, T_REPLACED, round));
	MPI_Sendrecv_replace(
		data, LARGE, MPI_INT, right, T_REPLACED, left, T_REPLACED, other, &s);
	CHECK(has(&s, left, T_REPLACED, LARGE) &&
		is_from(data, LARGE, left, T_REPLACED, round));
	MPI_Sendrecv(data, 1, MPI_INT, MPI_PROC_NULL, 1, got, 1, MPI_INT, MPI_PROC_NULL, 1,
		MPI_COMM_WORLD, &s);
	CHECK(has(&s, MPI_PROC_NULL, MPI_ANY_TAG, 0));
}

/* Rank 0 gives work to whoever is free. */
static void workers(int round)
{
	int task = 0, done = 0, answer[2], tasks = 3 * size;
	MPI_Status s;

	while (rank == 0 && done < size - 1) {
		MPI_Recv(answer, 2, MPI_INT, MPI_ANY_SOURCE, T_WORK, MPI_COMM_WORLD, &s);
		CHECK(answer[0] == s.MPI_SOURCE && answer[1] == round);
		done += task >= tasks;
		MPI_Send(&task, 1, MPI_INT, s.MPI_SOURCE, T_WORK, other);
		task++;
	}
	while (rank && task < tasks) {
		answer[0] = rank;
		answer[1] = round;
		MPI_Send(answer, 2, MPI_INT, 0, T_WORK, MPI_COMM_WORLD);
		MPI_Recv(&task, 1, MPI_INT, 0, T_WORK, other, MPI_STATUS_IGNORE);
		work_at_random();
	}
	MPI_Barrier(other);
}

static void to_oneself(int round)
{
	int in = 0, out = round, flag = 0;
	MPI_Message m;
	MPI_Request r[2];
	MPI_Status s;

	MPI_Isend(&out, 1, MPI_INT, 0, T_SELF, MPI_COMM_SELF, &r[0]);
	work_at_random();
	while (!flag)
		MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, &m, &s);
	CHECK(has(&s, 0, T_SELF, 1));
	work_at_random();
	MPI_Imrecv(&in, 1, MPI_INT, &m, &r[1]);
	MPI_Wait(&r[1], &s);
	MPI_Wait(&r[0], MPI_STATUS_IGNORE);
	CHECK(in == round && has(&s, 0, T_SELF, 1));
}

static void tell_error(MPI_Comm *comm, int *code, ...)
{
	int class = 0;

	MPI_Error_class(*code, &class);
	errors_told += *comm == quiet && class == MPI_ERR_TRUNCATE;
}

/* A message that is longer than what there is room for: an error of the communicator. */
static void truncated(int round)
{
	int data[SMALL], told = errors_told, class = 0;

	fill(data, SMALL, right, T_SHORT, round);
	MPI_Send(data, SMALL, MPI_INT, right, T_SHORT, quiet);
	work_at_random();
	MPI_Error_class(
		MPI_Recv(data, 1, MPI_INT, left, T_SHORT, quiet, MPI_STATUS_IGNORE), &class);
	CHECK(class == MPI_ERR_TRUNCATE && errors_told == told + 1);
}

static void cancelled(int round)
{
	MPI_Request r;
	MPI_Status s;
	int data, flag = 0;

	(void)round;
	MPI_Irecv(&data, 1, MPI_INT, MPI_ANY_SOURCE, T_SHORT, other, &r);
	work_at_random();
	MPI_Cancel(&r);
	MPI_Wait(&r, &s);
	MPI_Test_cancelled(&s, &flag);
	CHECK(flag);
}

/* Nobody is told when it has come; the next message in order says so. */
static void freed(int round)
{
	static int in;
	int out = word(rank, right, T_FREED, round, 0), next = 0;
	MPI_Request r;

	in = 0;
	MPI_Irecv(&in, 1, MPI_INT, left, T_FREED, other, &r);
	MPI_Request_free(&r);
	CHECK(r == MPI_REQUEST_NULL);
	MPI_Isend(&out, 1, MPI_INT, right, T_FREED, other, &r);
	MPI_Request_free(&r);
	MPI_Send(&out, 1, MPI_INT, right, T_FREED, other);
	MPI_Recv(&next, 1, MPI_INT, left, T_FREED, other, MPI_STATUS_IGNORE);
	CHECK(next == word(left, rank, T_FREED, round, 0) && in == next);
}

/* The program has no handle of the datatype any more while the receive is under way. */
static void freed_type(int round)
{
	MPI_Datatype pair;
	MPI_Request r;
	MPI_Comm comm;
	int in[2] = {0}, out[2];

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	MPI_Irecv(in, 1, pair, left, T_SHORT, comm, &r);
	MPI_Type_free(&pair);
	work_at_random();
	fill(out, 2, right, T_SHORT, round);
	MPI_Send(out, 2, MPI_INT, right, T_SHORT, comm);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	CHECK(is_from(in, 2, left, T_SHORT, round));
	MPI_Comm_free(&comm);
}

static void one_round(int round)
{
	static void (*const parts[])(int) = {persistent, synchronous, exchanged, workers,
		to_oneself, truncated, cancelled, freed, freed_type};
	int value = round;

	for (int i = 0; i < 4; i++) {
		work_at_random();
		parts[chance(&common, sizeof(parts) / sizeof(*parts))](round);
	}
	if (!chance(&common, 3))
		MPI_Bcast(&value, 1, MPI_INT, round % size, other);
	CHECK(value == round);
}

/* ---- */

static void prepare(void)
{
	MPI_Errhandler handler;
	MPI_Comm half;

	left = (rank + size - 1) % size;
	right = (rank + 1) % size;
	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
	MPI_Comm_dup(MPI_COMM_WORLD, &mail[0]);
	MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &mail[1]);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !(rank % 2), 1, &between);
	MPI_Comm_free(&half);
	MPI_Comm_create_errhandler(tell_error, &handler);
	MPI_Comm_set_errhandler(quiet, handler);
	MPI_Errhandler_free(&handler);
	MPI_Type_vector(LARGE / 2, 1, 2, MPI_INT, &every_second);
	MPI_Type_commit(&every_second);
	MPI_Recv_init(&under.token_in, 1, MPI_INT, left, T_RING, quiet, &under.token[0]);
	MPI_Send_init(&under.token_out, 1, MPI_INT, right, T_RING, quiet, &under.token[1]);
}

static void finish(void)
{
	MPI_Request_free(&under.token[0]);
	MPI_Request_free(&under.token[1]);
	MPI_Type_free(&every_second);
	MPI_Comm_free(&other);
	MPI_Comm_free(&between);
	MPI_Comm_free(&quiet);
	MPI_Comm_free(&mail[0]);
	MPI_Comm_free(&mail[1]);
}

/* A send that is not to end before it is asked for. */
static void send_unasked(void)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	int data = 5;

	if (rank == 0) {
		MPI_Ssend(&data, 1, MPI_INT, 1, T_SSEND, MPI_COMM_WORLD);
		CHECK(!access("asked", F_OK));
	}
	if (rank != 1)
		return;
	while (access("asked", F_OK))
		nanosleep(&nap, NULL);
	MPI_Recv(&data, 1, MPI_INT, 0, T_SSEND, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	int on = 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	own = rank + 1;
	prepare();
	begin(0);
	for (int round = 1; on; round++) {
		the_round = round;
		one_round(round);
		complete(round - 1);
		work_at_random();
		begin(round);
		show_round(round);
		if (round == 1) {
			printf("ready\n");
			fflush(stdout);
			if (argc > 1)
				send_unasked();
		}
		on = access("go", F_OK);
		MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
		if (!on)
			complete(round);
	}
	finish();
	MPI_Finalize();
	printf("ok\n");
	return 0;
}
