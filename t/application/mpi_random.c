/*
 * mpi_random.c - an MPI program made by chance, of which each rank checks all that it gets. All ranks have the same
 * list of operations, made from the seed that is the argument, and each does its part of it in order, so that none
 * waits for ever: messages of all kinds, which are asked for at once or much later, collective calls, also nonblocking
 * ones, communicators that are made and freed, and windows, of whose memory each rank knows what it has to be.
 *
 * With "early" as a further argument it waits for the file "awake" before it calls any function of MPI, and shows that in "early.RANK". With
 * "posted" each rank has many receives posted while rounds go on without anything else.
 *
 * "ready" after the first round. Rounds are shown as in mpi_ranks.h; "ok" at the end, when the file "go" is there.
 */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "mpi_ranks.h"

enum {
	COMMS = 6,
	PENDING = 64,
	LARGEST = 70000,
	OPS = 40,
	LATER = 30,
	TAGS = 20000,
	WINDOWS = 12
};

/* Communicators that this rank is no member of are MPI_COMM_NULL. */
static struct {
	bool used;
	MPI_Comm comm;
	int members[8], count, here; /* ranks of MPI_COMM_WORLD */
} comms[COMMS];

/* Begun and not complete. */
static struct pending {
	MPI_Request request;
	int comm;
	unsigned op; /* which is to have sent it */
	int from;    /* of a receive: a rank of MPI_COMM_WORLD; -1: a send */
	int bytes;
	int source;          /* what the status has to say */
	unsigned char *data; /* of a reduction: what is given, and what comes */
	long sum;            /* that has to come; 0: it is none */
} pending[PENDING];
static int pending_count;

/* Places in the memory of a window, in longs. */
enum {
	FETCHED, /* counters: by MPI_Fetch_and_op, */
	COMPARED,
	LOCKED, /* under exclusive locks, */
	HELD,   /* and under one that the first member has for as long as there is the window */
	PUT,    /* from here on so many of each member */
	PUTS = 600,
	PLACES = PUT + 8 * PUTS,
};

static struct window {
	bool used, held;
	MPI_Win win;
	long *memory;
	int comm;
	long counted[PUT]; /* what the counters of each member have to be */
} windows[WINDOWS];

/* To be received, but not yet. */
static struct {
	unsigned op, at; /* when */
	int comm, from, bytes;
} later[LATER];
static int later_count;

static unsigned op;
static volatile sig_atomic_t signals;

/* ---- contents ---- */

static unsigned char byte(unsigned number, int from, int i)
{
	return number * 131 + from * 17 + i * 7 + (i >> 8);
}

static void fill(unsigned char *data, int n, unsigned number)
{
	for (int i = 0; i < n; i++)
		data[i] = byte(number, rank, i);
}

static bool is_from(const unsigned char *data, int n, unsigned number, int from)
{
	for (int i = 0; i < n; i++)
		if (data[i] != byte(number, from, i))
			return false;
	return true;
}

static int tag_of(unsigned number)
{
	return (int)(number % TAGS);
}

static bool says(const MPI_Status *s, int source, unsigned number, int bytes)
{
	int n = -1;

	MPI_Get_count(s, MPI_BYTE, &n);
	return s->MPI_SOURCE == source && s->MPI_TAG == tag_of(number) && n == bytes;
}

static unsigned char *memory(int bytes)
{
	unsigned char *data = malloc(bytes + 1);

	CHECK(data);
	return data;
}

/* ---- what is under way ---- */

static void completed(struct pending *p, const MPI_Status *s)
{
	if (p->from >= 0) {
		CHECK(says(s, p->source, p->op, p->bytes));
		CHECK(is_from(p->data, p->bytes, p->op, p->from));
	}
	CHECK(!p->sum || ((long *)p->data)[1] == p->sum);
	/* Who still reads it is found out. */
	if (p->data)
		memset(p->data, 0xee, p->bytes);
	free(p->data);
	p->data = NULL;
}

static void remove_pending(int i)
{
	pending[i] = pending[--pending_count];
}

static void complete_one(void)
{
	int i = chance(&own, pending_count), flag = 0;
	MPI_Request requests[PENDING];
	MPI_Status s;

	if (chance(&own, 2)) {
		while (!flag)
			CHECK(!MPI_Test(&pending[i].request, &flag, &s));
	} else if (chance(&own, 2)) {
		CHECK(!MPI_Wait(&pending[i].request, &s));
	} else {
		for (int k = 0; k < pending_count; k++)
			requests[k] = pending[k].request;
		CHECK(!MPI_Waitany(pending_count, requests, &i, &s));
		pending[i].request = requests[i];
	}
	CHECK(pending[i].request == MPI_REQUEST_NULL);
	completed(&pending[i], &s);
	remove_pending(i);
}

static void complete_all(void)
{
	MPI_Request requests[PENDING];
	MPI_Status s[PENDING];

	for (int k = 0; k < pending_count; k++)
		requests[k] = pending[k].request;
	CHECK(!MPI_Waitall(pending_count, requests, s));
	for (int k = 0; k < pending_count; k++)
		completed(&pending[k], &s[k]);
	pending_count = 0;
}

static void add_pending(struct pending p)
{
	if (pending_count == PENDING)
		complete_all();
	pending[pending_count++] = p;
}

/* ---- messages ---- */

static int in_comm(int comm, int world)
{
	for (int i = 0; i < comms[comm].count; i++)
		if (comms[comm].members[i] == world)
			return i;
	return -1;
}

static void send_message(int comm, int to, int bytes, int how)
{
	unsigned char *data = memory(bytes);
	MPI_Comm c = comms[comm].comm;
	int peer = in_comm(comm, to), tag = tag_of(op);
	MPI_Request request;

	fill(data, bytes, op);
	if (how < 2) {
		CHECK(how ? !MPI_Ssend(data, bytes, MPI_BYTE, peer, tag, c)
			  : !MPI_Send(data, bytes, MPI_BYTE, peer, tag, c));
		free(data);
		return;
	}
	CHECK(how == 2 ? !MPI_Issend(data, bytes, MPI_BYTE, peer, tag, c, &request)
		       : !MPI_Isend(data, bytes, MPI_BYTE, peer, tag, c, &request));
	add_pending((struct pending){request, comm, op, -1, bytes, 0, data, 0});
}

static void receive_probed(
	MPI_Comm c, int source, int peer, unsigned number, unsigned char *data, int bytes)
{
	int flag = 0, tag = tag_of(number);
	MPI_Message message;
	MPI_Status s;

	if (chance(&own, 2)) {
		CHECK(!MPI_Mprobe(source, tag, c, &message, &s) &&
			says(&s, peer, number, bytes));
		CHECK(!MPI_Mrecv(data, bytes, MPI_BYTE, &message, &s));
		CHECK(says(&s, peer, number, bytes));
		return;
	}
	while (!flag)
		CHECK(!MPI_Iprobe(source, tag, c, &flag, &s));
	CHECK(says(&s, peer, number, bytes));
	CHECK(!MPI_Recv(data, bytes, MPI_BYTE, peer, tag, c, MPI_STATUS_IGNORE));
}

static void receive_message(int comm, int from, int bytes, unsigned number)
{
	unsigned char *data = memory(bytes);
	int peer = in_comm(comm, from), source = chance(&own, 3) ? peer : MPI_ANY_SOURCE;
	int room = chance(&own, 2) ? bytes : LARGEST, tag = tag_of(number);
	MPI_Comm c = comms[comm].comm;
	MPI_Request request;
	MPI_Status s;

	switch (chance(&own, 4)) {
	case 0:
		receive_probed(c, source, peer, number, data, bytes);
		break;
	case 1:
		data = realloc(data, room + 1);
		CHECK(data && !MPI_Recv(data, room, MPI_BYTE, source, tag, c, &s));
		CHECK(says(&s, peer, number, bytes));
		break;
	default:
		CHECK(!MPI_Irecv(data, bytes, MPI_BYTE, source, tag, c, &request));
		add_pending(
			(struct pending){request, comm, number, from, bytes, peer, data, 0});
		return;
	}
	CHECK(is_from(data, bytes, number, from));
	free(data);
}

static void receive_due(bool all)
{
	for (int i = 0; i < later_count;) {
		if (!all && later[i].at > op) {
			i++;
			continue;
		}
		receive_message(later[i].comm, later[i].from, later[i].bytes, later[i].op);
		later[i] = later[--later_count];
	}
}

static void do_message(int comm)
{
	static const int sizes[] = {0, 1, 100, 1000, 1500, 9000, LARGEST};
	int from = comms[comm].members[chance(&common, comms[comm].count)];
	int to = comms[comm].members[chance(&common, comms[comm].count)];
	bool delayed = chance(&common, 3) == 0;
	/* What is asked for later has to be away before. */
	int bytes = sizes[chance(&common, delayed ? 4 : 7)];
	unsigned at = op + chance(&common, 2 * OPS);

	if (rank == from)
		send_message(comm, to, bytes, delayed || from == to ? 3 : (int)chance(&own, 4));
	if (rank != to)
		return;
	if (!delayed || later_count == LATER)
		receive_message(comm, from, bytes, op);
	else
		later[later_count++] = (typeof(*later)){op, at, comm, from, bytes};
}

/* All tell one, which takes them as they come: those of each in their order. */
static void do_burst(int comm)
{
	int root = chance(&common, comms[comm].count), next[8] = {0}, word;
	MPI_Comm c = comms[0].comm; /* for nothing else */
	MPI_Status s;

	for (int i = 0; i < 4; i++) {
		word = (int)op * 8 + i;
		if (comms[comm].here != root)
			CHECK(!MPI_Send(&word, 1, MPI_INT, comms[comm].members[root],
				(int)chance(&own, 3), c));
	}
	for (int i = 0; comms[comm].here == root && i < 4 * (comms[comm].count - 1); i++) {
		CHECK(!MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, c, &s));
		CHECK(word == (int)op * 8 + next[s.MPI_SOURCE]);
		next[s.MPI_SOURCE]++;
	}
	/* So that those of the next one come behind. */
	CHECK(!MPI_Barrier(comms[comm].comm));
}

/* ---- collective calls ---- */

static long value(int world)
{
	return (long)op * 1000 + world;
}

static long sum_of(int comm)
{
	long sum = 0;

	for (int i = 0; i < comms[comm].count; i++)
		sum += value(comms[comm].members[i]);
	return sum;
}

static void do_collective(int comm)
{
	int kind = chance(&common, 5), root = chance(&common, comms[comm].count);
	long in = value(rank), out = -1, all[8] = {0};
	MPI_Comm c = comms[comm].comm;

	switch (kind) {
	case 0:
		CHECK(!MPI_Barrier(c));
		break;
	case 1:
		CHECK(!MPI_Bcast(&in, 1, MPI_LONG, root, c));
		CHECK(in == value(comms[comm].members[root]));
		break;
	case 2:
		CHECK(!MPI_Reduce(&in, &out, 1, MPI_LONG, MPI_SUM, root, c));
		CHECK(out == (comms[comm].here == root ? sum_of(comm) : -1));
		break;
	case 3:
		CHECK(!MPI_Allreduce(&in, &out, 1, MPI_LONG, MPI_SUM, c) &&
			out == sum_of(comm));
		break;
	case 4:
		CHECK(!MPI_Allgather(&in, 1, MPI_LONG, all, 1, MPI_LONG, c));
		for (int i = 0; i < comms[comm].count; i++)
			CHECK(all[i] == value(comms[comm].members[i]));
		break;
	}
}

static void do_nonblocking(int comm)
{
	bool barrier = chance(&common, 2);
	long *data = (long *)memory(2 * sizeof(long));
	MPI_Comm c = comms[comm].comm;
	MPI_Request request;

	data[0] = value(rank);
	CHECK(barrier ? !MPI_Ibarrier(c, &request)
		      : !MPI_Iallreduce(data, data + 1, 1, MPI_LONG, MPI_SUM, c, &request));
	add_pending((struct pending){.request = request,
		.comm = comm,
		.op = op,
		.from = -1,
		.data = (unsigned char *)data,
		.bytes = 2 * sizeof(long),
		.sum = barrier ? 0 : sum_of(comm)});
}

/* ---- communicators ---- */

static void note_members(int made)
{
	MPI_Group world, group;
	int here[8], there[8];

	MPI_Comm_size(comms[made].comm, &comms[made].count);
	MPI_Comm_rank(comms[made].comm, &comms[made].here);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Comm_group(comms[made].comm, &group);
	for (int i = 0; i < comms[made].count; i++)
		here[i] = i;
	CHECK(!MPI_Group_translate_ranks(group, comms[made].count, here, world, there));
	memcpy(comms[made].members, there, sizeof(there));
	MPI_Group_free(&group);
	MPI_Group_free(&world);
}

/* Of all ranks, in one or two parts, so that the list of operations stays the same. */
static void make_comm(int made, unsigned parts)
{
	int color = rank % (int)parts, key = -rank;

	comms[made].used = true;
	if (parts == 1)
		CHECK(!MPI_Comm_dup(MPI_COMM_WORLD, &comms[made].comm));
	else
		CHECK(!MPI_Comm_split(MPI_COMM_WORLD, color, key, &comms[made].comm));
	note_members(made);
}

static void free_window(struct window *w);

static void free_comm(int comm)
{
	for (int i = 0; i < WINDOWS; i++)
		if (windows[i].used && windows[i].comm == comm)
			free_window(&windows[i]);
	receive_due(true);
	complete_all();
	CHECK(!MPI_Comm_free(&comms[comm].comm) && comms[comm].comm == MPI_COMM_NULL);
	comms[comm].used = false;
}

/* Communicator 0 is for bursts, 1 is MPI_COMM_WORLD. */
static void do_comm(void)
{
	int comm = 2 + chance(&common, COMMS - 2), parts = 1 + chance(&common, 2);

	if (comms[comm].used)
		free_comm(comm);
	else
		make_comm(comm, parts);
}

/* ---- windows: each member does the same to the one that stands @shift behind it ---- */

static void make_window(struct window *w, int comm)
{
	MPI_Comm c = comms[comm].comm;

	*w = (struct window){.used = true, .held = chance(&common, 2), .comm = comm};
	CHECK(!MPI_Win_allocate(
		PLACES * sizeof(long), sizeof(long), MPI_INFO_NULL, c, &w->memory, &w->win));
	memset(w->memory, 0, PLACES * sizeof(long));
	CHECK(!MPI_Barrier(c));
	if (w->held && comms[comm].here == 0)
		CHECK(!MPI_Win_lock(MPI_LOCK_EXCLUSIVE, comms[comm].count - 1, 0, w->win));
}

/* Of all that is done by now. */
static void check_counters(struct window *w, int last)
{
	int here = comms[w->comm].here;
	MPI_Comm c = comms[w->comm].comm;

	CHECK(!MPI_Barrier(c));
	CHECK(!MPI_Win_lock(MPI_LOCK_SHARED, here, 0, w->win));
	for (int i = 0; i < last; i++)
		CHECK(w->memory[i] == w->counted[i]);
	CHECK(!MPI_Win_unlock(here, w->win));
	CHECK(!MPI_Barrier(c));
}

static void free_window(struct window *w)
{
	int here = comms[w->comm].here, last = comms[w->comm].count - 1;

	if (w->held && here == 0)
		CHECK(!MPI_Win_unlock(last, w->win));
	if (here != last)
		w->counted[HELD] = 0;
	check_counters(w, PUT);
	CHECK(!MPI_Win_free(&w->win) && w->win == MPI_WIN_NULL);
	w->used = false;
}

static long put_value(int member, int i)
{
	return (long)op * 100000 + member * 10000 + i;
}

static bool was_put(const struct window *w, int member, int n)
{
	for (int i = 0; i < n; i++)
		if (w->memory[PUT + member * PUTS + i] != put_value(member, i))
			return false;
	return true;
}

static void fill_puts(long *data, int here, int n)
{
	for (int i = 0; i < n; i++)
		data[i] = put_value(here, i);
}

static void put_between_fences(struct window *w, int to, int from, int n)
{
	int here = comms[w->comm].here;
	long data[PUTS];

	fill_puts(data, here, n);
	CHECK(!MPI_Win_fence(0, w->win));
	CHECK(!MPI_Put(data, n, MPI_LONG, to, PUT + here * PUTS, n, MPI_LONG, w->win));
	CHECK(!MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win));
	CHECK(was_put(w, from, n) && !MPI_Barrier(comms[w->comm].comm));
}

static void put_in_groups(struct window *w, int to, int from, int n)
{
	int here = comms[w->comm].here;
	MPI_Group all, targets, origins;
	long data[PUTS];

	CHECK(!MPI_Comm_group(comms[w->comm].comm, &all));
	CHECK(!MPI_Group_incl(all, 1, &to, &targets) &&
		!MPI_Group_incl(all, 1, &from, &origins));
	fill_puts(data, here, n);
	CHECK(!MPI_Win_post(origins, 0, w->win) && !MPI_Win_start(targets, 0, w->win));
	CHECK(!MPI_Put(data, n, MPI_LONG, to, PUT + here * PUTS, n, MPI_LONG, w->win));
	CHECK(!MPI_Win_complete(w->win) && !MPI_Win_wait(w->win));
	CHECK(was_put(w, from, n) && !MPI_Barrier(comms[w->comm].comm));
	MPI_Group_free(&origins);
	MPI_Group_free(&targets);
	MPI_Group_free(&all);
}

/* They are got back by requests, in one epoch. */
static void put_and_get(struct window *w, int to, int n)
{
	int here = comms[w->comm].here;
	long data[PUTS], got[PUTS];
	MPI_Request requests[2];

	fill_puts(data, here, n);
	CHECK(!MPI_Win_lock_all(0, w->win));
	CHECK(!MPI_Rput(
		data, n, MPI_LONG, to, PUT + here * PUTS, n, MPI_LONG, w->win, &requests[0]));
	CHECK(!MPI_Wait(&requests[0], MPI_STATUS_IGNORE) && !MPI_Win_flush(to, w->win));
	CHECK(!MPI_Rget(
		got, n, MPI_LONG, to, PUT + here * PUTS, n, MPI_LONG, w->win, &requests[1]));
	CHECK(!MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
	CHECK(!memcmp(got, data, n * sizeof(*got)));
	CHECK(!MPI_Win_unlock_all(w->win));
}

static void count_together(struct window *w, int to)
{
	static const long one = 1;
	long found = -1, expected = 0, next;

	CHECK(!MPI_Win_lock(MPI_LOCK_SHARED, to, 0, w->win));
	CHECK(!MPI_Fetch_and_op(&one, &found, MPI_LONG, to, FETCHED, MPI_SUM, w->win));
	CHECK(!MPI_Win_flush(to, w->win) && found >= 0);
	for (found = -1; found != expected;) {
		if (found >= 0)
			expected = found;
		next = expected + 1;
		CHECK(!MPI_Compare_and_swap(
			&next, &expected, &found, MPI_LONG, to, COMPARED, w->win));
		CHECK(!MPI_Win_flush(to, w->win));
	}
	CHECK(!MPI_Win_unlock(to, w->win));
	w->counted[FETCHED]++;
	w->counted[COMPARED]++;
}

static void count_alone(struct window *w, int to)
{
	long found = -1;

	CHECK(!MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, w->win));
	CHECK(!MPI_Get(&found, 1, MPI_LONG, to, LOCKED, 1, MPI_LONG, w->win));
	CHECK(!MPI_Win_flush(to, w->win));
	found++;
	CHECK(!MPI_Put(&found, 1, MPI_LONG, to, LOCKED, 1, MPI_LONG, w->win));
	CHECK(!MPI_Win_unlock(to, w->win));
	w->counted[LOCKED]++;
}

/* It is not waited for. */
static void count_held(struct window *w)
{
	static const long one = 1;

	if (comms[w->comm].here == 0)
		CHECK(!MPI_Accumulate(&one, 1, MPI_LONG, comms[w->comm].count - 1, HELD, 1,
			MPI_LONG, MPI_SUM, w->win));
	w->counted[HELD]++;
}

static void use_window(struct window *w)
{
	static const int lengths[] = {1, 20, PUTS};
	int count = comms[w->comm].count, here = comms[w->comm].here;
	int shift = chance(&common, count), n = lengths[chance(&common, 3)];
	int to = (here + shift) % count, from = (here + count - shift) % count;

	if (w->held) {
		count_held(w);
		return;
	}
	switch (chance(&common, 6)) {
	case 0:
		put_between_fences(w, to, from, n);
		break;
	case 1:
		put_in_groups(w, to, from, n);
		break;
	case 2:
		put_and_get(w, to, n);
		break;
	case 3:
		count_together(w, to);
		break;
	case 4:
		count_alone(w, to);
		break;
	case 5:
		check_counters(w, PUT);
		break;
	}
}

static void do_window(int comm)
{
	struct window *w = &windows[chance(&common, WINDOWS)];

	if (!w->used)
		make_window(w, comm);
	else if (!chance(&common, 8))
		free_window(w);
	else
		use_window(w);
}

/* ---- operations ---- */

static void caught(int number)
{
	signals += number == SIGUSR1;
}

static void do_signal(void)
{
	int before = signals;

	raise(SIGUSR1);
	CHECK(signals == before + 1);
}

static int draw_comm(void)
{
	int comm = 1 + chance(&common, COMMS - 1);

	return comms[comm].used ? comm : 1;
}

static void do_operation(void)
{
	unsigned next = common;
	int comm, kind;

	op++;
	receive_due(false);
	comm = draw_comm();
	kind = chance(&common, 26);
	if (kind < 9)
		do_message(comm);
	else if (kind < 12)
		do_collective(comm);
	else if (kind < 14)
		do_nonblocking(comm);
	else if (kind == 14)
		do_burst(1);
	else if (kind == 15)
		do_comm();
	else if (kind == 16)
		do_signal();
	else if (kind < 19 && pending_count)
		complete_one();
	else if (kind >= 20)
		do_window(comm);
	else
		work_at_random();
	/* Whatever was drawn in it, which is not the same in each part of a communicator. */
	common = next * 2654435761u + op;
}

static bool is_end(void)
{
	int end = !access("go", F_OK);

	CHECK(!MPI_Bcast(&end, 1, MPI_INT, 0, MPI_COMM_WORLD));
	return end;
}

static void nap(void)
{
	const struct timespec moment = {.tv_nsec = 2000000};

	nanosleep(&moment, NULL);
}

static void wait_before_init(void)
{
	char name[32];

	snprintf(name, sizeof(name), "early.%s", getenv("PMI_RANK"));
	close(open(name, O_CREAT | O_WRONLY, 0600));
	while (access("awake", F_OK))
		nap();
}

enum { POSTED = 40 };

static void keep_receives(void)
{
	int from = (rank + size - 1) % size, to = (rank + 1) % size, got[POSTED];
	MPI_Request requests[POSTED];

	for (int i = 0; i < POSTED; i++)
		MPI_Irecv(&got[i], 1, MPI_INT, from, i, MPI_COMM_WORLD, &requests[i]);
	do {
		show_round(++the_round);
		nap();
	} while (access("go", F_OK));
	for (int i = 0; i < POSTED; i++)
		MPI_Send(&i, 1, MPI_INT, to, i, MPI_COMM_WORLD);
	MPI_Waitall(POSTED, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < POSTED; i++)
		CHECK(got[i] == i);
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";

	if (!strcmp(how, "early"))
		wait_before_init();
	MPI_Init(&argc, &argv);
	signal(SIGUSR1,
		caught); /* a library may have one of its own, and gets another one at each restart */
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (!strcmp(how, "posted")) {
		puts("ready"), fflush(stdout);
		keep_receives();
		MPI_Finalize();
		puts("ok");
		return 0;
	}
	common = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	own = common * 31 + rank;
	make_comm(0, 1);
	comms[1].used = true;
	comms[1].comm = MPI_COMM_WORLD;
	note_members(1);
	do {
		for (int i = 0; i < OPS; i++)
			do_operation();
		show_round(++the_round);
		if (the_round == 1)
			puts("ready"), fflush(stdout);
	} while (!is_end());
	receive_due(true);
	complete_all();
	for (int i = 0; i < WINDOWS; i++)
		if (windows[i].used)
			free_window(&windows[i]);
	for (int i = 2; i < COMMS; i++)
		if (comms[i].used)
			free_comm(i);
	free_comm(0);
	MPI_Finalize();
	puts("ok");
	return 0;
}
