/*
 * mpi_windows.c - windows of each kind, reached in epochs of each kind, round after round, with locks, epochs and
 * operations that last over several calls. Each round checks what it finds. Prints "ready" after the first one, and
 * "ok" at the end, when there is a file "go" or SIGUSR1 came. With "begun", "flushing" or "polling" it does something else
 * before that.
 */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "mpi_ranks.h"

enum {
	LARGE = 50000, /* ints in a transfer that takes more than one message */
	SMALL = 16,
	HUGE_ONE = 4000000, /* in one that takes long */
};

static volatile sig_atomic_t told_to_end;
static int failures; /* that the error handler was told of */
static int copied, removed, attribute = 5, fenced_memory[LARGE + SMALL];
static long counters[3]; /* of rank 0: under locks alone, by accumulating, by comparing */
static int *posted_memory, *lasting_memory;
static MPI_Win fenced, posted, locked, lasting, dynamic;
static int keyval;

static void on_end_signal(int signal)
{
	told_to_end = 1;
}

static int left(void)
{
	return (rank + size - 1) % size;
}

static int right(void)
{
	return (rank + 1) % size;
}

static void note_failure(MPI_Win *window, int *code, ...)
{
	failures++;
}

static int remove_attribute(MPI_Win window, int key, void *value, void *extra)
{
	removed += value == &attribute && extra == &copied;
	return 0;
}

/* ---- long-lived windows ---- */

static void make_all(void)
{
	MPI_Errhandler handler;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "no_locks", "false");
	MPI_Info_set(info, "same_size", "true");
	MPI_Win_create(fenced_memory, sizeof(fenced_memory), sizeof(int), info, MPI_COMM_WORLD,
		&fenced);
	MPI_Info_free(&info);
	MPI_Win_allocate(SMALL * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
		&posted_memory, &posted);
	MPI_Win_create(counters, rank ? 0 : sizeof(counters), sizeof(long), MPI_INFO_NULL,
		MPI_COMM_WORLD, &locked);
	MPI_Win_allocate(2 * SMALL * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
		&lasting_memory, &lasting);
	memset(lasting_memory, 0, 2 * SMALL * sizeof(int));
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
	MPI_Win_create_errhandler(note_failure, &handler);
	MPI_Win_set_errhandler(posted, handler);
	MPI_Errhandler_free(&handler);
	MPI_Win_set_name(posted, "posted");
	MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, remove_attribute, &keyval, &copied);
	MPI_Win_set_attr(posted, keyval, &attribute);
	MPI_Win_lock_all(0, lasting);
	MPI_Win_fence(MPI_MODE_NOPRECEDE, fenced);
}

/* A call that fails leaves nothing behind that could not be saved. */
static void fail(void)
{
	MPI_Win none;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	CHECK(MPI_Win_delete_attr(MPI_WIN_NULL, keyval) != MPI_SUCCESS);
	CHECK(MPI_Win_set_attr(MPI_WIN_NULL, keyval, &attribute) != MPI_SUCCESS);
	CHECK(MPI_Win_set_name(MPI_WIN_NULL, "none") != MPI_SUCCESS);
	CHECK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, MPI_WIN_NULL) != MPI_SUCCESS);
	CHECK(MPI_Win_fence(0, MPI_WIN_NULL) != MPI_SUCCESS);
	CHECK(MPI_Win_attach(MPI_WIN_NULL, &attribute, sizeof(attribute)) != MPI_SUCCESS);
	CHECK(MPI_Win_create(&attribute, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &none) !=
		MPI_SUCCESS);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void free_all(void)
{
	MPI_Win_fence(MPI_MODE_NOSUCCEED, fenced);
	MPI_Win_unlock_all(lasting);
	MPI_Win_free(&fenced);
	MPI_Win_free(&posted);
	CHECK(posted == MPI_WIN_NULL && removed == 1);
	MPI_Win_free(&locked);
	MPI_Win_free(&lasting);
	MPI_Win_free(&dynamic);
	MPI_Win_free_keyval(&keyval);
}

/* ---- what a window says of itself ---- */

static void ask(void)
{
	int length = 0, flag = 0, other = 0, compared = -1, *number = NULL;
	char name[MPI_MAX_OBJECT_NAME] = "", value[16] = "";
	MPI_Group group, world;
	MPI_Aint *bytes = NULL;
	MPI_Info info;
	void *at = NULL;

	MPI_Win_get_name(posted, name, &length);
	CHECK(!strcmp(name, "posted") && length == 6);
	MPI_Win_get_attr(posted, keyval, &at, &flag);
	CHECK(flag && at == &attribute);
	MPI_Win_get_attr(posted, MPI_WIN_BASE, &at, &flag);
	CHECK(flag && at == posted_memory);
	MPI_Win_get_attr(posted, MPI_WIN_SIZE, &bytes, &flag);
	CHECK(flag && *bytes == SMALL * sizeof(int));
	MPI_Win_get_attr(posted, MPI_WIN_DISP_UNIT, &number, &flag);
	CHECK(flag && *number == sizeof(int));
	MPI_Win_get_attr(posted, MPI_WIN_CREATE_FLAVOR, &number, &flag);
	CHECK(flag && *number == MPI_WIN_FLAVOR_ALLOCATE);
	MPI_Win_get_attr(dynamic, MPI_WIN_CREATE_FLAVOR, &number, &flag);
	CHECK(flag && *number == MPI_WIN_FLAVOR_DYNAMIC);
	MPI_Win_get_group(fenced, &group);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_compare(group, world, &compared);
	CHECK(compared == MPI_IDENT);
	MPI_Group_free(&group);
	MPI_Group_free(&world);
	MPI_Win_get_info(fenced, &info);
	MPI_Info_get(info, "same_size", sizeof(value) - 1, value, &flag);
	CHECK(flag && !strcmp(value, "true"));
	MPI_Info_free(&info);
	other = failures;
	CHECK(FAILS(MPI_Put(&other, 1, MPI_INT, 0, 0, 1, MPI_INT, posted)));
	CHECK(FAILS(MPI_Win_complete(posted)) && failures == other + 2);
}

/* ---- fences ---- */

/* What was put before is seen behind the fence; the epoch that it begins lasts until the next round. */
static void between_fences(int round)
{
	static int sent[LARGE], got[SMALL];

	for (int i = 0; i < LARGE; i++)
		sent[i] = round * 7 + i + rank;
	MPI_Put(sent, LARGE, MPI_INT, right(), 0, LARGE, MPI_INT, fenced);
	MPI_Accumulate(&round, 1, MPI_INT, left(), LARGE, 1, MPI_INT, MPI_REPLACE, fenced);
	MPI_Win_fence(0, fenced);
	for (int i = 0; i < LARGE; i++)
		CHECK(fenced_memory[i] == round * 7 + i + left());
	CHECK(fenced_memory[LARGE] == round);
	fenced_memory[LARGE + 1] = rank * round;
	MPI_Win_fence(0, fenced);
	MPI_Get(got, 2, MPI_INT, left(), LARGE, 2, MPI_INT, fenced);
	MPI_Win_fence(0, fenced);
	CHECK(got[0] == round && got[1] == left() * round);
}

/* ---- post, start, complete, wait ---- */

static void post_and_start(int round)
{
	int of[2] = {left(), right()}, sent[2] = {round, rank}, flag = 0;
	int n = size > 2 ? 2 : 1;
	MPI_Datatype every_second;
	MPI_Group world, around;

	MPI_Type_vector(2, 1, 2, MPI_INT, &every_second);
	MPI_Type_commit(&every_second);
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, n, of, &around);
	MPI_Win_post(around, 0, posted);
	MPI_Win_start(around, 0, posted);
	MPI_Put(sent, 2, MPI_INT, right(), 0, 1, every_second, posted);
	MPI_Put(sent, 2, MPI_INT, left(), 4, 2, MPI_INT, posted);
	MPI_Type_free(&every_second);
	MPI_Win_complete(posted);
	if (round % 2)
		MPI_Win_wait(posted);
	while (!flag && round % 2 == 0)
		MPI_Win_test(posted, &flag);
	CHECK(posted_memory[0] == round && posted_memory[2] == left());
	CHECK(posted_memory[4] == round && posted_memory[5] == right());
	MPI_Group_free(&around);
	MPI_Group_free(&world);
}

/* ---- locks ---- */

static void add_alone(void)
{
	long value = -1;

	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, locked);
	MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, locked);
	MPI_Win_flush(0, locked);
	value++;
	MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, locked);
	MPI_Win_unlock(0, locked);
}

static void add_together(void)
{
	long one = 1, found, next, seen = -1;

	MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, locked);
	MPI_Accumulate(&one, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_SUM, locked);
	MPI_Get_accumulate(
		NULL, 0, MPI_LONG, &found, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_NO_OP, locked);
	MPI_Win_flush(0, locked);
	CHECK(found > 0);
	MPI_Fetch_and_op(&one, &found, MPI_LONG, 0, 1, MPI_SUM, locked);
	MPI_Win_flush_local(0, locked);
	for (found = 0; seen != found;) {
		if (seen >= 0)
			found = seen;
		next = found + 1;
		MPI_Compare_and_swap(&next, &found, &seen, MPI_LONG, 0, 2, locked);
		MPI_Win_flush(0, locked);
	}
	MPI_Win_unlock(0, locked);
}

static void add_under_locks(int round)
{
	long found[3] = {0};

	for (int i = 0; i < 4; i++) {
		add_alone();
		add_together();
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, locked);
	MPI_Get(found, 3, MPI_LONG, 0, 0, 3, MPI_LONG, locked);
	MPI_Win_unlock(0, locked);
	CHECK(found[0] == 4l * size * round && found[1] == 8l * size * round &&
		found[2] == 4l * size * round);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* All is locked since the first round. */
static void in_lasting_epoch(int round)
{
	int value = round * size + rank, found[3] = {-1, -1, -1}, one = 1;
	MPI_Request requests[4];

	MPI_Rput(&value, 1, MPI_INT, right(), 0, 1, MPI_INT, lasting, &requests[0]);
	MPI_Raccumulate(
		&one, 1, MPI_INT, left(), 1, 1, MPI_INT, MPI_SUM, lasting, &requests[1]);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	MPI_Win_flush_local_all(lasting);
	MPI_Win_flush_all(lasting);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(lasting);
	CHECK(lasting_memory[0] == round * size + left() && lasting_memory[1] == round);
	MPI_Rget(&found[0], 1, MPI_INT, right(), 1, 1, MPI_INT, lasting, &requests[2]);
	MPI_Rget_accumulate(&one, 1, MPI_INT, &found[1], 1, MPI_INT, right(), 2, 1, MPI_INT,
		MPI_SUM, lasting, &requests[3]);
	MPI_Waitall(2, requests + 2, MPI_STATUSES_IGNORE);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, posted);
	posted_memory[8] = round;
	MPI_Win_unlock(rank, posted);
	MPI_Win_lock_all(0, posted);
	MPI_Get(&found[2], 1, MPI_INT, rank, 8, 1, MPI_INT, posted);
	MPI_Win_unlock_all(posted);
	CHECK(found[0] == round && found[1] == round - 1 && found[2] == round);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- windows that come and go ---- */

static void attach(int round)
{
	static int region[2][SMALL];
	int *memory = region[round % 2], value = round + rank;
	MPI_Aint here, there;

	MPI_Win_attach(dynamic, memory, sizeof(region[0]));
	MPI_Get_address(memory + 3, &here);
	MPI_Sendrecv(&here, 1, MPI_AINT, left(), 0, &there, 1, MPI_AINT, right(), 0,
		MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, dynamic);
	MPI_Put(&value, 1, MPI_INT, right(), there, 1, MPI_INT, dynamic);
	MPI_Win_unlock(right(), dynamic);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(memory[3] == round + left());
	MPI_Win_detach(dynamic, memory);
}

static void make_and_free(int round)
{
	int *memory, *same, unit = 0, before = removed, flag;
	MPI_Comm halves;
	MPI_Aint bytes = 0;
	MPI_Win window;

	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &halves);
	MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, halves, &memory, &window);
	MPI_Win_set_attr(window, keyval, &attribute);
	MPI_Comm_free(&halves);
	MPI_Win_fence(0, window);
	MPI_Put(&round, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
	MPI_Win_fence(0, window);
	MPI_Win_get_attr(window, keyval, &same, &flag);
	CHECK(flag && same == &attribute);
	MPI_Win_free(&window);
	CHECK(removed == before + 1);
	removed = before;
	MPI_Win_allocate_shared(
		sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &memory, &window);
	MPI_Win_shared_query(window, 0, &bytes, &unit, &same);
	CHECK(same == memory && bytes == sizeof(int) && unit == sizeof(int));
	MPI_Win_free(&window);
}

/* ---- what is under way while no rank calls MPI ---- */

static void show(const char *what)
{
	char name[32];

	snprintf(name, sizeof(name), "%s.%d", what, rank);
	close(open(name, O_CREAT, 0600));
}

static void sleep_until_awake(void)
{
	show("asleep");
	while (access("awake", F_OK)) {
		if (!rank && !access("abort", F_OK))
			MPI_Abort(MPI_COMM_WORLD, 3);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

/* Rank 0 has the lock for a while yet, in which the others would have it, if they could, and see what is not its last
 * word. */
static void add_when_others_wait(const int *sent, MPI_Win window)
{
	char name[32];

	for (int other = 1; other < size; other++) {
		snprintf(name, sizeof(name), "asking.%d", other);
		while (access(name, F_OK))
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	for (int i = 0; i < 200; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
		MPI_Win_flush(1, window);
	}
	MPI_Accumulate(sent, HUGE_ONE, MPI_INT, 1, 0, HUGE_ONE, MPI_INT, MPI_SUM, window);
}

/* What was left on communicators that have been freed is on none that are made later. */
static void find_no_messages(void)
{
	enum { COMMS = 8 };
	MPI_Comm comms[COMMS];
	int found = 0;

	for (int i = 0; i < COMMS; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	for (int i = 0; i < COMMS; i++) {
		MPI_Barrier(comms[i]);
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], &found, MPI_STATUS_IGNORE);
		CHECK(!found);
	}
	for (int i = 0; i < COMMS; i++)
		MPI_Comm_free(&comms[i]);
}

/*
 * Rank 0 has locked the window of rank 1 and added to it so often, which rank 1 has to do, and does not: both sleep,
 * with a file "asleep" each, until there is a file "awake"; for "abort", rank 0 ends them. The others wait for the
 * lock. If @flushing, rank 0 does not sleep, but waits in MPI_Win_unlock; else it adds once more when it has woken up.
 */
static void begin_and_sleep(int flushing, int times)
{
	static int sent[HUGE_ONE], memory[HUGE_ONE];
	int factor = rank ? times + !flushing : 1;
	MPI_Win window;

	MPI_Win_create(
		memory, sizeof(memory), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	if (!rank)
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < HUGE_ONE && !rank; i++)
		sent[i] = i + 1;
	for (int i = 0; i < times && !rank; i++)
		MPI_Accumulate(
			sent, HUGE_ONE, MPI_INT, 1, 0, HUGE_ONE, MPI_INT, MPI_SUM, window);
	if (rank == 1 || (!rank && !flushing))
		sleep_until_awake();
	else
		show("asleep");
	if (!rank && !flushing)
		add_when_others_wait(sent, window);
	if (rank) {
		show("asking");
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
		MPI_Get(sent, HUGE_ONE, MPI_INT, 1, 0, HUGE_ONE, MPI_INT, window);
	}
	MPI_Win_unlock(1, window);
	for (int i = 0; i < HUGE_ONE; i++)
		CHECK(sent[i] == factor * (i + 1));
	MPI_Win_free(&window);
	find_no_messages();
}

/* ---- a rank that looks for a change by requests ---- */

enum {
	MEETINGS = 3, /* behind the file "awake" */
};

static int look_with_request(int target, MPI_Win window)
{
	int found = 0, flag = 0;
	MPI_Request request;

	MPI_Rget(&found, 1, MPI_INT, target, 0, 1, MPI_INT, window, &request);
	while (!flag)
		MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
	return found;
}

/*
 * Rank 0 looks, again and again, whether the others have left it a word. They have entered a collective call that it
 * has not, and are to meet often before they do so.
 */
static void look_by_requests(void)
{
	MPI_Request request;
	MPI_Comm others;
	MPI_Win window;
	int *memory, left = MEETINGS;

	MPI_Comm_split(MPI_COMM_WORLD, rank > 0, 0, &others);
	MPI_Win_allocate(
		sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
	*memory = 0;
	MPI_Win_lock_all(0, window);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank)
		MPI_Ibarrier(MPI_COMM_WORLD, &request);
	show("asleep");
	if (!rank)
		while (!look_with_request(1, window))
			;
	while (rank && left) {
		int awake = !access("awake", F_OK);

		MPI_Allreduce(MPI_IN_PLACE, &awake, 1, MPI_INT, MPI_MAX, others);
		left -= awake;
	}
	if (rank == 1) {
		MPI_Accumulate(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_REPLACE, window);
		MPI_Win_flush(1, window);
	}
	if (!rank)
		MPI_Ibarrier(MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Win_unlock_all(window);
	MPI_Win_free(&window);
	MPI_Comm_free(&others);
}

static void begin_with(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "begun") || !strcmp(what, "flushing"))
		begin_and_sleep(what[0] == 'f', argc > 2 ? atoi(argv[2]) : 1);
	if (!strcmp(what, "polling"))
		look_by_requests();
}

int main(int argc, char **argv)
{
	int on = 1;

	signal(SIGUSR1, on_end_signal);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	begin_with(argc, argv);
	make_all();
	fail();
	for (int round = 1; on; round++) {
		the_round = round;
		ask();
		between_fences(round);
		post_and_start(round);
		add_under_locks(round);
		in_lasting_epoch(round);
		attach(round);
		make_and_free(round);
		show_round(round);
		on = !told_to_end && access("go", F_OK);
		MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
		if (round == 1) {
			printf("ready\n");
			fflush(stdout);
		}
	}
	free_all();
	MPI_Finalize();
	printf("ok\n");
	return 0;
}
