/*
 * mpi_shared.c - ranks that share the memory of windows (MPI_Win_allocate_shared), round after round, by loads and
 * stores, atomic operations, and MPI's own calls. The program keeps addresses of the memory, which must stay what they
 * are; a child of fork(2) of each rank has the memory, too; most of a large window is never touched. Each round checks
 * what it finds. Prints "ready" after the first one, and "ok" at the end, when there is a file "go".
 * Arguments:
 *
 *	polling		before that, rank 0 waits for what the last rank puts, and calls nothing of MPI meanwhile
 *	asleep		all sleep behind the first round, until there is a file "awake"; then they free what they share, at once
 *	freed		the same, but they have freed one before, and only children of some have it
 *	threads		several threads of two ranks put numbers, before that
 *	registered	each rank has its part registered with CUDA, and sets bytes of it by its device, too
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mpi_ranks.h"

static void show(const char *what)
{
	char name[64];

	snprintf(name, sizeof(name), "%s.%d", what, rank);
	close(open(name, O_CREAT, 0600));
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* ---- the windows: parts that follow each other, parts on pages of their own, and a large one ---- */

enum {
	WORDS = 1500, /* of the first rank; the second has none, others more */
	SPARSE = 1 << 30,
};

struct shared {
	MPI_Win window;
	int *part[16];
	int words[16];
};

static struct shared packed, apart;
static MPI_Win sparse;
static char *sparse_part[16];

static int words_of(int of)
{
	return of == 1 ? 0 : WORDS * (of + 1) + of;
}

static void find_parts(struct shared *s)
{
	for (int of = 0; of < size; of++) {
		MPI_Aint bytes = -1;
		int unit = 0;

		MPI_Win_shared_query(s->window, of, &bytes, &unit, &s->part[of]);
		s->words[of] = words_of(of);
		CHECK(bytes == (MPI_Aint)(words_of(of) * sizeof(int)) && unit == sizeof(int));
	}
}

static void make_shared(struct shared *s, const char *is_apart)
{
	int *own = NULL, *flavor = NULL, *first = NULL, flag = 0, unit = 0;
	MPI_Aint bytes = 0;
	MPI_Info info;

	MPI_Info_create(&info);
	MPI_Info_set(info, "alloc_shared_noncontig", is_apart);
	MPI_Win_allocate_shared(words_of(rank) * sizeof(int), sizeof(int), info, MPI_COMM_WORLD,
		&own, &s->window);
	MPI_Info_free(&info);
	find_parts(s);
	CHECK(rank == 1 || own == s->part[rank]);
	MPI_Win_shared_query(s->window, MPI_PROC_NULL, &bytes, &unit, &first);
	CHECK(first == s->part[0] && bytes == (MPI_Aint)(WORDS * sizeof(int)));
	MPI_Win_get_attr(s->window, MPI_WIN_CREATE_FLAVOR, &flavor, &flag);
	CHECK(flag && *flavor == MPI_WIN_FLAVOR_SHARED);
	MPI_Win_lock_all(0, s->window);
}

/* Loads, and stores, each by one rank, of all words; the neighbour's part, which is on the same page, is another's. */
static void check_words(const struct shared *s, int round)
{
	for (int of = 0; of < size; of++)
		for (int i = 16; i < s->words[of]; i++)
			CHECK(s->part[of][i] == (round ? of * 100000 + round * 7 + i : 0));
}

static void change_words(struct shared *s, int round)
{
	MPI_Win_sync(s->window);
	MPI_Barrier(MPI_COMM_WORLD);
	check_words(s, round - 1);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 16; i < s->words[rank]; i++)
		s->part[rank][i] = rank * 100000 + round * 7 + i;
	MPI_Win_sync(s->window);
	MPI_Barrier(MPI_COMM_WORLD);
	check_words(s, round);
}

/* Datatypes with gaps, of different forms at both ends: every second word from 8 on, in pairs. */
static void reach_by_requests(struct shared *s, int round)
{
	int sent[6] = {round, -1, round + 1, -1, round + 2, -1}, got[4] = {0};
	MPI_Datatype pairs, every_second;
	MPI_Request request;

	MPI_Type_vector(2, 1, 2, MPI_INT, &every_second);
	MPI_Type_commit(&every_second);
	MPI_Type_contiguous(2, MPI_INT, &pairs);
	MPI_Type_commit(&pairs);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == size - 1) {
		MPI_Rput(sent, 1, every_second, 0, 8, 1, pairs, s->window, &request);
		MPI_Type_free(&every_second);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Win_flush(0, s->window);
	} else {
		MPI_Type_free(&every_second);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(s->part[0][8] == round && s->part[0][9] == round + 1);
	MPI_Rget(got, 2, MPI_INT, 0, 8, 1, pairs, s->window, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	CHECK(got[0] == round && got[1] == round + 1);
	MPI_Type_free(&pairs);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* The first words of the first part: counted by all, without a call of MPI, and by calls. */
static void count_together(struct shared *s, int round)
{
	_Atomic int *counter = (_Atomic int *)&s->part[0][0];
	int one = 1, before = -1, got = 0, sent = round * 10 + rank;
	int target = size > 2 ? 2 : 0;

	for (int i = 0; i < 100; i++)
		atomic_fetch_add(counter, 1);
	MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 1, MPI_SUM, s->window);
	MPI_Put(&sent, 1, MPI_INT, 0, 2 + rank, 1, MPI_INT, s->window);
	MPI_Win_flush_all(s->window);
	MPI_Win_sync(s->window);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(*counter == 100 * size * round && s->part[0][1] == size * round);
	CHECK(before >= size * (round - 1) && before < size * round);
	for (int of = 0; of < size; of++)
		CHECK(s->part[0][2 + of] == round * 10 + of);
	MPI_Get(&got, 1, MPI_INT, target, 20, 1, MPI_INT, s->window);
	MPI_Win_flush(target, s->window);
	CHECK(got == target * 100000 + round * 7 + 20);
	reach_by_requests(s, round);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* What is wrong with an operation is said, and done, as without trecr. */
static void put_wrongly(struct shared *s)
{
	int sent[2] = {-5, -6}, got[2] = {-7, -8}, class = 0;
	MPI_Request request;

	MPI_Win_set_errhandler(s->window, MPI_ERRORS_RETURN);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == size - 1) {
		MPI_Error_class(
			MPI_Put(sent, 1, MPI_INT, 0, -1, 1, MPI_INT, s->window), &class);
		CHECK(class == MPI_ERR_DISP);
		/* There is room for less than is sent. */
		CHECK(!MPI_Put(sent, 2, MPI_INT, 0, 20, 1, MPI_INT, s->window));
		CHECK(!MPI_Rput(sent, 2, MPI_INT, 0, 22, 1, MPI_INT, s->window, &request));
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Win_flush(0, s->window);
		CHECK(!MPI_Get(got, 1, MPI_INT, 0, 20, 2, MPI_INT, s->window));
		MPI_Win_flush(0, s->window);
		CHECK(got[0] == -5 && got[1] == -8);
		for (int i = 0; i < 4; i++)
			CHECK(s->part[0][20 + i] == (i % 2 ? 0 : -5));
		memset(&s->part[0][20], 0, 4 * sizeof(int));
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_set_errhandler(s->window, MPI_ERRORS_ARE_FATAL);
}

/* Threads put numbers of their own, each another count of them. */
static void *put_in_thread(void *argument)
{
	const struct shared *s = &apart;
	int number = *(int *)argument, sent[8], got[8];

	for (int i = 0; i < 2000; i++) {
		for (int k = 0; k < number; k++)
			sent[k] = number * 10000 + i;
		MPI_Put(sent, number, MPI_INT, 0, 16 * number + 800 * (rank == 0), number,
			MPI_INT, s->window);
		MPI_Get(got, number, MPI_INT, 0, 16 * number + 800 * (rank == 0), number,
			MPI_INT, s->window);
		for (int k = 0; k < number; k++)
			CHECK(got[k] == sent[k]);
	}
	return NULL;
}

static void put_by_threads(void)
{
	int numbers[] = {1, 3, 8};
	pthread_t threads[3];

	if (rank < 2)
		for (int i = 0; i < 3; i++)
			CHECK(!pthread_create(&threads[i], NULL, put_in_thread, &numbers[i]));
	for (int i = 0; rank < 2 && i < 3; i++)
		CHECK(!pthread_join(threads[i], NULL));
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		memset(apart.part[0], 0, WORDS * sizeof(int));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* A message that is received into another rank's part, and may be under way between rounds. */
static MPI_Request into_first = MPI_REQUEST_NULL;

static void send_into(const struct shared *s, int round)
{
	MPI_Wait(&into_first, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(s->part[0][15] == round - 1);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == size - 1)
		MPI_Irecv(&s->part[0][15], 1, MPI_INT, 0, 99, MPI_COMM_WORLD, &into_first);
	if (!rank)
		MPI_Send(&round, 1, MPI_INT, size - 1, 99, MPI_COMM_WORLD);
}

/* ---- most of it is never touched ---- */

static void make_sparse(void)
{
	MPI_Win_allocate_shared(
		SPARSE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &sparse_part[rank], &sparse);
	for (int of = 0; of < size; of++) {
		MPI_Aint bytes = 0;
		int unit = 0;

		MPI_Win_shared_query(sparse, of, &bytes, &unit, &sparse_part[of]);
		CHECK(bytes == SPARSE);
	}
}

/* Pages of the next rank's part are written to by this one. */
static void use_sparse(int round)
{
	char *next = sparse_part[(rank + 1) % size];

	for (int i = 1; i <= 4; i++) {
		CHECK(next[i * (SPARSE / 8) + 5] == (char)(round > 1 ? round - 1 + i : 0));
		next[i * (SPARSE / 8) + 5] = (char)(round + i);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int of = 0; of < size; of++)
		CHECK(sparse_part[of][4 * (SPARSE / 8) + 5] == (char)(round + 4));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Pages that are there are told by the kernel to their owner. */
static long pages_of_sparse(void)
{
	enum { CHUNK = 1 << 28 };
	static unsigned char there[CHUNK / 4096];
	long count = 0;

	for (long at = 0; at < SPARSE; at += CHUNK) {
		char *from = (char *)((unsigned long)(sparse_part[rank] + at) & ~4095ul);

		CHECK(!mincore(from, CHUNK, there));
		for (int i = 0; i < CHUNK / 4096; i++)
			count += there[i] & 1;
	}
	return count;
}

/* ---- a child that has it, too ---- */

static pid_t child;
static int to_child = -1, from_child = -1;

/* Asked with a number it answers with the sum of what all ranks have at that place, and leaves its answer in the memory
 * of its rank; with -1, it adds 1 to another word there, if there is one, and says so. */
static void serve(int in, int out)
{
	int place, sum;

	signal(SIGPIPE, SIG_IGN);
	while (read(in, &place, sizeof(place)) == sizeof(place)) {
		sum = 0;
		for (int of = 0; of < size && place >= 0; of++)
			sum += packed.words[of] ? packed.part[of][place] : 0;
		if (place < 0 && packed.words[rank])
			sum = 1, packed.part[rank][13]++;
		else if (packed.words[rank])
			packed.part[rank][14] = sum;
		if (write(out, &sum, sizeof(sum)) != sizeof(sum))
			break;
	}
	_exit(0);
}

static void make_child(void)
{
	int in[2], out[2];

	CHECK(!pipe(in) && !pipe(out));
	fflush(stdout);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		close(in[1]);
		close(out[0]);
		serve(in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	to_child = in[1];
	from_child = out[0];
}

static int sum_of_child(int place)
{
	int sum = 0;

	CHECK(write(to_child, &place, sizeof(place)) == sizeof(place));
	CHECK(read(from_child, &sum, sizeof(sum)) == sizeof(sum));
	return sum;
}

static void ask_child(void)
{
	int place = 17, sum = sum_of_child(place), expected = 0;

	for (int of = 0; of < size; of++)
		expected += packed.words[of] ? packed.part[of][place] : 0;
	CHECK(sum == expected);
	CHECK(!packed.words[rank] || packed.part[rank][14] == expected);
}

static void end_child(void)
{
	int status = -1;

	close(to_child);
	close(from_child);
	CHECK(waitpid(child, &status, 0) == child && !status);
	child = 0;
}

/* The children of all ranks but the first still share the memory: one after the other changes it by its answer. */
static void ask_without_window(int expected)
{
	CHECK(!child || sum_of_child(17) == expected);
	for (int of = 1; of < size; of++) {
		int before, sum;

		MPI_Barrier(MPI_COMM_WORLD);
		before = child ? sum_of_child(13) : 0;
		MPI_Barrier(MPI_COMM_WORLD);
		sum = of == rank ? sum_of_child(-1) : 0;
		MPI_Bcast(&sum, 1, MPI_INT, of, MPI_COMM_WORLD);
		CHECK(sum == (of != 1) && (!child || sum_of_child(13) == before + sum));
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- windows that come and go, of some ranks ---- */

static void make_and_free(int round)
{
	int *own, *first = NULL, unit = 0, among = 0, members = 0;
	MPI_Comm node, halves;
	MPI_Aint bytes = 0;
	MPI_Win window;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
	MPI_Comm_split(node, rank % 2, -rank, &halves);
	MPI_Comm_free(&node);
	MPI_Comm_rank(halves, &among);
	MPI_Comm_size(halves, &members);
	MPI_Win_allocate_shared(among ? 0 : members * sizeof(int), sizeof(int), MPI_INFO_NULL,
		halves, &own, &window);
	MPI_Win_shared_query(window, 0, &bytes, &unit, &first);
	CHECK(bytes == (MPI_Aint)(members * sizeof(int)));
	MPI_Win_fence(0, window);
	first[among] = round + rank;
	MPI_Win_fence(0, window);
	for (int of = 0; of < members; of++)
		CHECK(first[of] >= round && first[of] < round + size);
	MPI_Win_free(&window);
	MPI_Comm_free(&halves);
}

static void free_packed(void)
{
	MPI_Wait(&into_first, MPI_STATUS_IGNORE);
	MPI_Win_unlock_all(packed.window);
	MPI_Win_free(&packed.window);
}

static void free_all(void)
{
	if (packed.window != MPI_WIN_NULL)
		free_packed();
	MPI_Win_unlock_all(apart.window);
	MPI_Win_free(&apart.window);
	MPI_Win_free(&sparse);
}

/* ---- by a GPU ---- */

static int (*set_bytes)(unsigned long long at, unsigned char value, size_t count),
	(*synchronize)(void);
static unsigned long long at_device;

static void *function(void *library, const char *name)
{
	void *found = dlsym(library, name);

	CHECK(found);
	return found;
}

static void register_part(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
	int (*init)(unsigned), (*retain)(void **, int), (*set_current)(void *);
	int (*register_host)(void *, size_t, unsigned);
	int (*device_pointer)(unsigned long long *, void *, unsigned);

	CHECK(library);
	*(void **)&init = function(library, "cuInit");
	*(void **)&retain = function(library, "cuDevicePrimaryCtxRetain");
	*(void **)&set_current = function(library, "cuCtxSetCurrent");
	*(void **)&register_host = function(library, "cuMemHostRegister_v2");
	*(void **)&device_pointer = function(library, "cuMemHostGetDevicePointer_v2");
	*(void **)&set_bytes = function(library, "cuMemsetD8_v2");
	*(void **)&synchronize = function(library, "cuCtxSynchronize");
	CHECK(!init(0) && !retain(&context, 0) && !set_current(context));
	CHECK(!register_host(sparse_part[rank], 8 << 20, 1 | 2));
	CHECK(!device_pointer(&at_device, sparse_part[rank], 0));
}

static void set_by_device(int round)
{
	CHECK(round == 1 || sparse_part[(rank + 1) % size][100] == (char)(round - 1));
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(!set_bytes(at_device + 100, (unsigned char)round, 1) && !synchronize());
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(sparse_part[(rank + 1) % size][100] == (char)round);
}

/* ---- at the beginning ---- */

static void sleep_until_awake(void)
{
	show("asleep");
	while (access("awake", F_OK))
		nap();
}

/* Rank 0 makes no call of MPI until it sees what the last one has put. */
static void poll_memory(void)
{
	int one = 1, seen = 0;

	if (rank != size - 1)
		show("asleep");
	if (!rank)
		while (!(seen = *(volatile int *)&packed.part[0][3]))
			;
	if (rank == size - 1) {
		sleep_until_awake();
		MPI_Put(&one, 1, MPI_INT, 0, 3, 1, MPI_INT, packed.window);
		MPI_Win_flush(0, packed.window);
	}
	CHECK(rank || seen == 1);
	MPI_Barrier(MPI_COMM_WORLD);
	if (!rank)
		packed.part[0][3] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int on = 1, provided = 0;

	MPI_Init_thread(&argc, &argv,
		strcmp(what, "threads") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	make_shared(&packed, "false");
	make_shared(&apart, "true");
	CHECK(!((unsigned long)apart.part[0] % 4096));
	make_sparse();
	make_child();
	put_wrongly(&packed);
	if (!strcmp(what, "threads") && provided == MPI_THREAD_MULTIPLE)
		put_by_threads();
	if (!strcmp(what, "polling"))
		poll_memory();
	if (!strcmp(what, "registered"))
		register_part();
	for (int round = 1; on; round++) {
		the_round = round;
		find_parts(&packed);
		change_words(&packed, round);
		change_words(&apart, round);
		count_together(&packed, round);
		send_into(&packed, round);
		use_sparse(round);
		ask_child();
		make_and_free(round);
		if (at_device)
			set_by_device(round);
		CHECK(at_device || pages_of_sparse() < 1000);
		show_round(round);
		if (!strcmp(what, "asleep") || !strcmp(what, "freed")) {
			int expected = sum_of_child(17);

			if (what[0] == 'f')
				free_packed();
			if (what[0] == 'f' && !rank)
				end_child();
			sleep_until_awake();
			if (what[0] == 'f')
				ask_without_window(expected);
			break;
		}
		END_ROUND(MPI_COMM_WORLD, round, on);
	}
	free_all();
	if (child)
		end_child();
	MPI_Finalize();
	printf("ok\n");
	return 0;
}
