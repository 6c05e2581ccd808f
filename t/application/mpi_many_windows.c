/*
 * mpi_many_windows.c - many windows at a time: of all ranks, in two orders, of some of them and of one; they are made and
 * freed round after round, in an order by chance. Each is used by locks, fences or groups that post and start, some with a
 * lock that rank 0 has for as long as there is the window. With "threads" as an argument two threads of each rank make and
 * free windows of the same ranks at the same time. With "churn" so many are made and freed, one after the other, that a
 * library would run out of what is not given back.
 *
 * "ready" after the first round. Rounds are shown as in mpi_ranks.h; "ok" at the end, when the file "go" is there.
 */
#include <mpi.h>
#include <pthread.h>
#include <string.h>

#include "mpi_ranks.h"

enum { WINDOWS = 140, CHANGES = 10, USES = 20, CHURN = 2500, COMMS = 5, KEPT = 12 };

static MPI_Comm comms[COMMS];

static struct window {
	MPI_Win win; /* MPI_WIN_NULL: there is none */
	int *memory; /* [0] by locks, [1] by fences, [2] by groups, [3] under the lock that lasts */
	MPI_Comm comm;
	int here, size;
	int used; /* how often, since it was made */
} windows[WINDOWS];

static int has_lasting_lock(int i)
{
	return i % 5 == 0;
}

static int uses_lock(int i)
{
	return !has_lasting_lock(i) && i % 3 == 0;
}

static void make_comms(void)
{
	comms[0] = MPI_COMM_WORLD;
	MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
	MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[2]);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[3]);
	comms[4] = MPI_COMM_SELF;
}

/* ---- made and freed ---- */

static void make(int i)
{
	MPI_Comm comm = comms[chance(&common, COMMS)];
	struct window *w = &windows[i];

	w->comm = comm;
	MPI_Comm_rank(comm, &w->here);
	MPI_Comm_size(comm, &w->size);
	CHECK(!MPI_Win_allocate(
		4 * sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &w->memory, &w->win));
	memset(w->memory, 0, 4 * sizeof(int));
	w->used = 0;
	MPI_Barrier(comm);
	if (has_lasting_lock(i) && !w->here)
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w->size - 1, 0, w->win);
}

static void expect(struct window *w, int at, int value)
{
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w->here, 0, w->win);
	CHECK(w->memory[at] == value);
	MPI_Win_unlock(w->here, w->win);
}

static void drop(int i)
{
	struct window *w = &windows[i];

	if (has_lasting_lock(i) && !w->here)
		MPI_Win_unlock(w->size - 1, w->win);
	/* Who waited for the lock has it now. */
	if (has_lasting_lock(i) && w->here == w->size - 1)
		expect(w, 3, w->used);
	MPI_Barrier(w->comm);
	if (uses_lock(i) && !w->here)
		expect(w, 0, w->size * w->used);
	CHECK(!MPI_Win_free(&w->win) && w->win == MPI_WIN_NULL);
}

/* ---- used ---- */

static void use_lock(struct window *w)
{
	int value = -1;

	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, w->win);
	MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, w->win);
	MPI_Win_flush(0, w->win);
	CHECK(value >= w->used - 1);
	value++;
	MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, w->win);
	MPI_Win_unlock(0, w->win);
}

static void use_fence(struct window *w)
{
	int to = (w->here + 1) % w->size, from = (w->here + w->size - 1) % w->size;
	int value = w->used * w->size + w->here;

	MPI_Win_fence(0, w->win);
	MPI_Put(&value, 1, MPI_INT, to, 1, 1, MPI_INT, w->win);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, w->win);
	CHECK(w->memory[1] == w->used * w->size + from);
}

static void use_groups(struct window *w)
{
	int to = (w->here + 1) % w->size, from = (w->here + w->size - 1) % w->size;
	int value = w->used * w->size + w->here;
	MPI_Group all, target, origin;

	MPI_Win_get_group(w->win, &all);
	MPI_Group_incl(all, 1, &to, &target);
	MPI_Group_incl(all, 1, &from, &origin);
	MPI_Win_post(origin, 0, w->win);
	MPI_Win_start(target, 0, w->win);
	MPI_Put(&value, 1, MPI_INT, to, 2, 1, MPI_INT, w->win);
	MPI_Win_complete(w->win);
	MPI_Win_wait(w->win);
	CHECK(w->memory[2] == w->used * w->size + from);
	MPI_Group_free(&all);
	MPI_Group_free(&target);
	MPI_Group_free(&origin);
}

static void use_lasting_lock(struct window *w)
{
	static const int one = 1;

	if (!w->here)
		MPI_Accumulate(&one, 1, MPI_INT, w->size - 1, 3, 1, MPI_INT, MPI_SUM, w->win);
}

static void use(int i)
{
	struct window *w = &windows[i];

	w->used++;
	if (has_lasting_lock(i))
		use_lasting_lock(w);
	else if (uses_lock(i))
		use_lock(w);
	else if (i % 3 == 1)
		use_fence(w);
	else
		use_groups(w);
}

static void do_round(void)
{
	for (int k = 0; k < CHANGES; k++) {
		int i = chance(&common, WINDOWS);

		if (windows[i].win == MPI_WIN_NULL)
			make(i);
		else if (chance(&common, 3) == 0)
			drop(i);
	}
	for (int k = 0; k < USES; k++) {
		int i = chance(&common, WINDOWS);

		if (windows[i].win != MPI_WIN_NULL)
			use(i);
	}
}

/* ---- by two threads ---- */

struct some {
	MPI_Comm comm;
	unsigned seed; /* the same in all ranks */
	MPI_Win win[KEPT];
	int *memory[KEPT], round;
};

static void change_some(struct some *s)
{
	int i = chance(&s->seed, KEPT), to = (rank + 1) % size;
	int value = ++s->round * size + rank;

	if (s->win[i] == MPI_WIN_NULL)
		MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, s->comm,
			&s->memory[i], &s->win[i]);
	MPI_Win_fence(0, s->win[i]);
	MPI_Put(&value, 1, MPI_INT, to, 0, 1, MPI_INT, s->win[i]);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, s->win[i]);
	CHECK(*s->memory[i] == s->round * size + (rank + size - 1) % size);
	if (chance(&s->seed, 3))
		MPI_Win_free(&s->win[i]);
}

static void *change_until_end(void *argument)
{
	struct some *s = argument;
	int on = 1, main = s->comm == comms[0];

	for (int i = 0; i < KEPT; i++)
		s->win[i] = MPI_WIN_NULL;
	for (int round = 1; on; round++) {
		for (int i = 0; i < 10; i++)
			change_some(s);
		if (main)
			show_round(the_round = round);
		on = access("go", F_OK) != 0;
		MPI_Bcast(&on, 1, MPI_INT, 0, s->comm);
		if (main && round == 1)
			puts("ready"), fflush(stdout);
	}
	for (int i = 0; i < KEPT; i++)
		if (s->win[i] != MPI_WIN_NULL)
			MPI_Win_free(&s->win[i]);
	return NULL;
}

static void change_by_threads(void)
{
	struct some here = {.comm = comms[0], .seed = 7}, there = {.comm = comms[1], .seed = 8};
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, change_until_end, &there));
	change_until_end(&here);
	pthread_join(thread, NULL);
}

/* ---- */

/* What all windows of some ranks have in common goes with the last. */
static void churn(void)
{
	for (int i = 0; i < CHURN; i++) {
		MPI_Win win;
		int *memory;

		CHECK(!MPI_Win_allocate(
			sizeof(int), 1, MPI_INFO_NULL, comms[i % COMMS], &memory, &win));
		CHECK(!MPI_Win_free(&win));
	}
}

static void rounds(void)
{
	int on = 1;

	for (int i = 0; i < WINDOWS; i++)
		make(i);
	for (int round = 1; on; round++) {
		the_round = round;
		do_round();
		show_round(round);
		END_ROUND(MPI_COMM_WORLD, round, on);
	}
	for (int i = 0; i < WINDOWS; i++)
		if (windows[i].win != MPI_WIN_NULL)
			drop(i);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int provided;

	MPI_Init_thread(&argc, &argv,
		strcmp(how, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	make_comms();
	if (!strcmp(how, "churn"))
		churn();
	else if (!strcmp(how, "threads"))
		change_by_threads();
	else
		rounds();
	MPI_Finalize();
	puts("ok");
	return 0;
}
